//! Settings that name one of a list: an estimator, a divergence, a method.
//!
//! Each entry of a list is a value of its own that knows everything that depends on it, in its own file; settings, help texts,
//! `stein verify` and the documents' test read the same list. So adding one takes its file and one line in the list.

use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::suggest;

/// A kind of thing of which settings name one.
pub trait Listed: Sync + 'static {
    /// What it is called in a sentence, as in "estimator".
    const WHAT: &'static str;

    /// All there are; the first one is the default.
    fn list() -> &'static [&'static Self];

    /// The name of this one in settings.
    fn label(&self) -> &'static str;
}

/// One entry of a list. In settings it is written as its name.
pub struct Choice<K: Listed + ?Sized>(&'static K);

impl<K: Listed + ?Sized> Choice<K> {
    /// The entry of this name.
    pub fn named(name: &str) -> Result<Self> {
        let found = K::list().iter().find(|entry| entry.label() == name);
        found.map(|entry| Choice(*entry)).ok_or_else(|| {
            Error::input(format!(
                "there is no {} \"{name}\"{}; choose one of: {}",
                K::WHAT,
                suggest::question(name, Self::names().into_iter()),
                Self::names().join(", ")
            ))
        })
    }

    /// All entries, in the order of the list.
    pub fn all() -> impl Iterator<Item = Self> {
        K::list().iter().map(|entry| Choice(*entry))
    }

    /// Their names.
    pub fn names() -> Vec<&'static str> {
        K::list().iter().map(|entry| entry.label()).collect()
    }

    /// The names in words: "qd, ppo or si".
    pub fn in_words() -> String {
        match &Self::names()[..] {
            [] => String::new(),
            [one] => one.to_string(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        }
    }

    /// The entry.
    pub fn get(self) -> &'static K {
        self.0
    }
}

impl<K: Listed + ?Sized> Default for Choice<K> {
    fn default() -> Self {
        Choice(K::list()[0])
    }
}

impl<K: Listed + ?Sized> Clone for Choice<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Listed + ?Sized> Copy for Choice<K> {}

impl<K: Listed + ?Sized> PartialEq for Choice<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0.label() == other.0.label()
    }
}

impl<K: Listed + ?Sized> Deref for Choice<K> {
    type Target = K;

    fn deref(&self) -> &K {
        self.0
    }
}

impl<K: Listed + ?Sized> fmt::Debug for Choice<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.0.label())
    }
}

impl<K: Listed + ?Sized> fmt::Display for Choice<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.label())
    }
}

impl<K: Listed + ?Sized> Serialize for Choice<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.label())
    }
}

impl<'de, K: Listed + ?Sized> Deserialize<'de> for Choice<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Divergence;

    #[test]
    fn a_choice_is_its_name() {
        type Chosen = Choice<dyn Divergence>;
        let chosen = Chosen::named("kls").unwrap();
        assert_eq!(chosen.to_string(), "kls");
        assert_eq!(chosen.temperature(), 1.0);
        assert_eq!(Chosen::default(), Chosen::named("js").unwrap());
        assert_ne!(chosen, Chosen::default());
        assert_eq!(serde_json::to_string(&chosen).unwrap(), "\"kls\"");
        assert_eq!(serde_json::from_str::<Chosen>("\"kls\"").unwrap(), chosen);
        let words = Chosen::named("helinger").unwrap_err().to_string();
        assert!(
            words.contains("no divergence \"helinger\"") && words.contains("did you mean hellinger?"),
            "{words}"
        );
        assert!(
            serde_json::from_str::<Chosen>("\"kll\"")
                .unwrap_err()
                .to_string()
                .contains("no divergence")
        );
        assert!(Chosen::in_words().starts_with("js, kls") && Chosen::in_words().ends_with(" or tv"));
        assert_eq!(Chosen::all().count(), Chosen::names().len());
    }
}

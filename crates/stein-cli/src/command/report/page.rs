//! The parts of a report: one HTML file that needs nothing else.

use serde_json::json;

/// Colours of curves, those of the figures (`plot/style.rs` of the library).
const COLOURS: [&str; 10] = [
    "#0072b2", "#e69f00", "#44aa99", "#cc3311", "#332288", "#b39ddb", "#882255", "#b8956a", "#7b3ff2", "#5c3317",
];

/// A report as it grows.
pub struct Page {
    title: String,
    body: String,
}

/// A cell of a table: what is shown, and the number that it sorts by.
pub struct Cell {
    pub shown: String,
    pub value: Option<f64>,
}

impl Cell {
    /// A text.
    pub fn text(text: &str) -> Cell {
        Cell {
            shown: text.into(),
            value: None,
        }
    }

    /// A number, shown like this.
    pub fn number(shown: String, value: f64) -> Cell {
        Cell {
            shown,
            value: value.is_finite().then_some(value),
        }
    }
}

/// A curve of a chart.
pub struct Line {
    pub name: String,
    /// The number of its colour; none for the colour of the text.
    pub colour: Option<usize>,
    /// One of many behind their mean.
    pub faint: bool,
    /// Whether it stands out.
    pub thick: bool,
    pub points: Vec<[f64; 2]>,
}

impl Page {
    /// An empty report.
    pub fn new(title: &str) -> Page {
        Page {
            title: title.into(),
            body: format!("<h1>{}</h1>\n", escape(title)),
        }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        self.body += &format!("<h2>{}</h2>\n", escape(text));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.body += &format!("<p>{}</p>\n", escape(text));
    }

    /// A paragraph in small print.
    pub fn remark(&mut self, text: &str) {
        self.body += &format!("<p class=\"faint\">{}</p>\n", escape(text));
    }

    /// The answer, in one sentence.
    pub fn answer(&mut self, text: &str) {
        self.body += &format!("<p class=\"answer\">{}</p>\n", escape(text));
    }

    /// Text as it is.
    pub fn verbatim(&mut self, text: &str) {
        self.body += &format!("<pre>{}</pre>\n", escape(text));
    }

    /// A table that sorts by a click on the head of a column.
    pub fn table(&mut self, heads: &[String], rows: &[Vec<Cell>]) {
        self.body += "<div class=\"scroll\"><table class=\"sorts\"><thead><tr>";
        for head in heads {
            self.body += &format!(
                "<th scope=\"col\"><button type=\"button\">{}</button></th>",
                escape(head)
            );
        }
        self.body += "</tr></thead><tbody>\n";
        for row in rows {
            self.body += "<tr>";
            for cell in row {
                let shown = escape(&cell.shown);
                self.body += &match cell.value {
                    Some(value) => format!("<td data-value=\"{value}\">{shown}</td>"),
                    None => format!("<td class=\"text\">{shown}</td>"),
                };
            }
            self.body += "</tr>\n";
        }
        self.body += "</tbody></table></div>\n";
    }

    /// Curves whose names and values show at the pointer.
    pub fn chart(&mut self, title: &str, [x, y]: [&str; 2], lines: &[Line]) {
        let colour = |line: &Line| line.colour.map(|number| COLOURS[number % COLOURS.len()]);
        let curves = lines.iter().map(|line| {
            // A tenth of a thousandth of a curve's height cannot be seen.
            let point = |point: &[f64; 2]| [point[0], rounded(point[1])];
            let finite = line
                .points
                .iter()
                .filter(|point| point.iter().all(|value| value.is_finite()));
            let points: Vec<[f64; 2]> = finite.map(point).collect();
            let style = match (line.thick, line.colour) {
                (true, None) => "thick mean",
                (true, _) => "thick",
                (false, None) => "mean",
                _ => "",
            };
            json!({ "name": line.name, "colour": colour(line), "faint": line.faint, "style": style, "points": points })
        });
        let data = json!({ "title": title, "x": x, "y": y, "curves": curves.collect::<Vec<_>>() });
        // Inside a script nothing may look like its end.
        let data = data.to_string().replace("</", "<\\/");
        self.body += "<figure><div class=\"chart\"><script type=\"application/json\">";
        self.body += &data;
        self.body += "</script><div class=\"tip\"></div></div><ul class=\"legend\">";
        for line in lines.iter().filter(|line| !line.faint) {
            let colour = colour(line).unwrap_or("var(--ink)");
            self.body += &format!("<li><i style=\"background:{colour}\"></i>{}</li>", escape(&line.name));
        }
        self.body += &format!("</ul><figcaption>{}</figcaption></figure>\n", escape(title));
    }

    /// Pictures beside each other: what they show, their kind (`image/png`) and their bytes.
    pub fn pictures(&mut self, pictures: &[(String, &str, Vec<u8>)]) {
        self.body += "<div class=\"pictures\">\n";
        for (caption, kind, bytes) in pictures {
            let (caption, data) = (escape(caption), base64(bytes));
            self.body += &format!(
                "<figure><img alt=\"{caption}\" src=\"data:{kind};base64,{data}\"><figcaption>{caption}</figcaption></figure>\n"
            );
        }
        self.body += "</div>\n";
    }

    /// The file.
    pub fn finish(self) -> String {
        let (style, script) = (include_str!("page.css"), include_str!("page.js"));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{}<script>\n{script}</script>\n</body>\n</html>\n",
            escape(&self.title),
            self.body
        )
    }
}

/// The five digits of a number that a curve shows.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Bytes as text (RFC 4648): three bytes are four letters, and `=` fills up.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |k: usize| u32::from(chunk.get(k).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for k in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * k) & 63) as usize];
            text.push(if k <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_rfc_4648_has_it() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn nothing_that_a_name_holds_becomes_markup() {
        let mut page = Page::new("<b>&\"");
        page.table(&["<i>".into()], &[vec![Cell::text("</td>")]]);
        let line = Line {
            name: "</script><script>alert(1)</script>".into(),
            colour: None,
            faint: false,
            thick: false,
            points: vec![[0.0, 1.0], [1.0, f64::NAN]],
        };
        page.chart("title", ["x", "y"], &[line]);
        let html = page.finish();
        for words in ["<b>", "<i>", "</td></td>", "alert(1)</script>"] {
            assert!(!html.contains(words), "{words} in {html}");
        }
        assert!(
            html.contains("&lt;b&gt;&amp;&quot;") && html.contains("[[0.0,1.0]]"),
            "{html}"
        );
        assert!(
            !html.contains("http://") || html.matches("http://").count() == html.matches("http://www.w3.org").count()
        );
    }
}

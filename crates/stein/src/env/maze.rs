//! maze
use super::*;
/// about
pub const ABOUT: &str = "a point with inertia in a 2-D maze; reward exp(-distance to the goal)";
/// settings
#[derive(serde::Serialize, serde::Deserialize)]
pub struct MazeConfig {}
impl Task for MazeConfig {
    fn validate(&self) -> Result<()> {
        Ok(())
    }
    fn make(&self) -> Result<Box<dyn Env>> {
        Err(crate::Error::failed("later"))
    }
}

//! The program `stein`.

fn main() {
    stein_cli::main_with(stein_cli::registry());
}

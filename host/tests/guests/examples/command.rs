//! A program: a component, but not a plugin.

fn main() {
    println!("This is a program and not a plugin.");
}

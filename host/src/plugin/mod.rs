//! Running guests: engine, limits, typed calls and the imports that a guest sees.

//! Fuzz targets for everything that Steadfast reads from outside.

//! From `tracing`'s events to [`Line`]s. Fields of the spans around an event are its fields too.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::line::{Line, Severity};
use super::outlet::Outlet;

pub(super) struct LineLayer {
    outlet: Arc<Outlet>,
}

impl LineLayer {
    pub(super) fn new(outlet: Arc<Outlet>) -> Self {
        Self { outlet }
    }
}

/// The fields of a span, kept with it.
#[derive(Default)]
struct SpanFields(Vec<(String, Value)>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LineLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(SpanFields(fields.fields));
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        record.record(&mut fields);
        if let Some(span) = context.span(id)
            && let Some(known) = span.extensions_mut().get_mut::<SpanFields>()
        {
            known.0.append(&mut fields.fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let mut line = Line::new(Severity::from(event.metadata().level()), own.message);
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(known) = span.extensions().get::<SpanFields>() {
                line.fields.extend_from_slice(&known.0);
            }
        }
        line.fields.append(&mut own.fields);
        self.outlet.write(&line);
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    fields: Vec<(String, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.push((field.name().to_owned(), value.into()));
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinities; as text they are at least seen.
        self.add(field, serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.add(field, value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

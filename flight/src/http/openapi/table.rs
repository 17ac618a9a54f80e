//! The words in which [`super::routes`] and [`super::openai`] describe routes. Constants only: the document is made of
//! them once, and `GET /` lists them.

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) role: Option<&'static str>,
    pub(super) query: &'static [Field],
    pub(super) headers: &'static [Field],
    pub(super) bodies: &'static [Media],
    pub(super) answers: &'static [Media],
    pub(super) status: &'static str,
}

/// Routes of one protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surface {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The page that says more.
    pub(super) page: &'static str,
    pub(super) errors: ErrorSchema,
    pub(super) routes: &'static [Route],
}

/// HTTP methods that routes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Patch,
    Delete,
}

/// A parameter, or a field of a JSON body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: FieldKind,
    pub(super) required: bool,
    pub(super) about: &'static str,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldKind {
    Text,
    Integer,
    Flag,
    List,
    Object,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    TextOrNull,
    /// A text or a list.
    TextOrList,
    /// A text or an object.
    TextOrObject,
    File,
}

/// A body of a content type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Media {
    pub(super) content_type: &'static str,
    pub(super) about: &'static str,
    /// Fields of a JSON object or a form.
    pub(super) fields: &'static [Field],
    /// JSON for JSON bodies, else the text itself.
    pub(super) example: Option<&'static str>,
}

/// How errors of a surface look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorSchema {
    Object,
    Flat,
    OpenAi,
    /// `{"detail": ...}`.
    Detail,
    Kusto,
    JsonRpc,
}

impl Verb {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl ErrorSchema {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "Error",
            Self::Flat => "AgentError",
            Self::OpenAi => "OpenAiError",
            Self::Detail => "HolmesError",
            Self::Kusto => "KustoError",
            Self::JsonRpc => "McpError",
        }
    }
}

impl Route {
    pub(super) const fn get(path: &'static str, summary: &'static str) -> Self {
        Self::new(Verb::Get, path, summary)
    }

    pub(super) const fn post(path: &'static str, summary: &'static str) -> Self {
        Self::new(Verb::Post, path, summary)
    }

    pub(super) const fn patch(path: &'static str, summary: &'static str) -> Self {
        Self::new(Verb::Patch, path, summary)
    }

    pub(super) const fn delete(path: &'static str, summary: &'static str) -> Self {
        Self::new(Verb::Delete, path, summary)
    }

    const fn new(verb: Verb, path: &'static str, summary: &'static str) -> Self {
        Self {
            verb,
            path,
            summary,
            role: Some("read"),
            query: &[],
            headers: &[],
            bodies: &[],
            answers: &[JSON],
            status: "200",
        }
    }

    /// No token is asked for.
    pub(super) const fn anyone(mut self) -> Self {
        self.role = None;
        self
    }

    pub(super) const fn writers(mut self) -> Self {
        self.role = Some("write");
        self
    }

    pub(super) const fn query(mut self, query: &'static [Field]) -> Self {
        self.query = query;
        self
    }

    pub(super) const fn headers(mut self, headers: &'static [Field]) -> Self {
        self.headers = headers;
        self
    }

    pub(super) const fn takes(mut self, bodies: &'static [Media]) -> Self {
        self.bodies = bodies;
        self
    }

    pub(super) const fn answers(mut self, answers: &'static [Media]) -> Self {
        self.answers = answers;
        self
    }

    pub(super) const fn status(mut self, status: &'static str) -> Self {
        self.status = status;
        self
    }
}

impl Field {
    pub(super) const fn new(name: &'static str, kind: FieldKind, about: &'static str) -> Self {
        Self { name, kind, required: false, about }
    }

    pub(super) const fn text(name: &'static str, about: &'static str) -> Self {
        Self::new(name, FieldKind::Text, about)
    }

    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Media {
    pub(super) const fn new(content_type: &'static str, about: &'static str) -> Self {
        Self { content_type, about, fields: &[], example: None }
    }

    /// A JSON object.
    pub(super) const fn json(fields: &'static [Field]) -> Self {
        Self { fields, ..JSON }
    }

    pub(super) const fn with(mut self, example: &'static str) -> Self {
        self.example = Some(example);
        self
    }
}

/// A JSON document.
pub(super) const JSON: Media = Media::new("application/json", "a JSON object");
/// Server-sent events.
pub(super) const EVENTS: Media = Media::new("text/event-stream", "server-sent events");

//! `GET /openapi.json`: every route in OpenAPI's format; `GET /docs`: the same as a page to read.
//!
//! A [`Reference`] is made of the surfaces that the router is made of.

use std::sync::LazyLock;

use axum::Extension;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, header};
use serde_json::Value;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, Components, KnownFormat, SchemaFormat, SchemaType, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, Object, ObjectBuilder, OpenApi, OpenApiBuilder,
    PathItem, Paths, Ref, RefOr, Required, ResponseBuilder, Schema, tag::TagBuilder,
};
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::idempotency::takes_key;
use crate::http::route::{ErrorSchema, Field, FieldKind, Media, Route, Surface, Verb};

const PAGE: &str = include_str!("openapi/page.html");
/// The header of requests that start runs.
const IDEMPOTENCY_KEY: Field =
    Field::text("Idempotency-Key", "a request that is sent again with the same key and body starts no second run");
/// The placeholder in the page for the nonce that lets its script and style run.
const NONCE: &str = "{nonce}";

/// What `GET /openapi.json` and `GET /` say about a server's routes.
pub(super) struct Reference {
    document: Result<String, String>,
    lines: Vec<String>,
}

impl Reference {
    pub(super) fn new(surfaces: &[Surface]) -> Self {
        let document = document(surfaces).to_json().map_err(|error| error.to_string());
        Self { document, lines: route_lines(surfaces) }
    }

    /// `GET, POST /path` for each path, in the order of the surfaces.
    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// A reference that is made when it is first asked for.
pub(super) type LazyReference = &'static LazyLock<Reference>;

/// `GET /openapi.json`.
pub(super) async fn json(Extension(reference): Extension<LazyReference>) -> Result<Response, ApiError> {
    let document = reference.document.clone().map_err(ApiError::internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], document).into_response())
}

/// `GET /docs`. The page loads nothing but the document, and only from here.
pub(super) async fn page() -> Response {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers: [(HeaderName, String); 5] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, PAGE.replace(NONCE, &nonce)).into_response()
}

fn route_lines(surfaces: &[Surface]) -> Vec<String> {
    let mut paths: Vec<(&str, Vec<&str>)> = Vec::new();
    for route in surfaces.iter().flat_map(|surface| surface.routes).filter(|route| route.verb != Verb::Any) {
        match paths.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, verbs)) => verbs.push(route.verb.as_str()),
            None => paths.push((route.path, vec![route.verb.as_str()])),
        }
    }
    paths.into_iter().map(|(path, verbs)| format!("{} {path}", verbs.join(", "))).collect()
}

fn document(surfaces: &[Surface]) -> OpenApi {
    let mut paths = Paths::new();
    for surface in surfaces {
        for route in surface.routes {
            let method = match route.verb {
                Verb::Get => HttpMethod::Get,
                Verb::Post => HttpMethod::Post,
                Verb::Patch => HttpMethod::Patch,
                Verb::Delete => HttpMethod::Delete,
                Verb::Any => continue,
            };
            let item = PathItem::new(method, operation(surface, route));
            match paths.paths.get_mut(route.path) {
                Some(known) => known.merge_operations(item),
                None => {
                    paths.paths.insert(route.path.to_owned(), item);
                }
            }
        }
    }
    let info = InfoBuilder::new().title("Querent").version(env!("CARGO_PKG_VERSION")).description(Some(
        "Embedded analytics: SQL, KQL and questions in plain language over HTTP. Flight SQL (gRPC) is on the same port. \
         `X-Request-ID` is echoed, or made when absent; `X-Querent-Error-Code` names the code of an error. \
         The role that a route asks for stands in its security requirement; a server without tokens asks for none.",
    ));
    let tags = surfaces.iter().map(|surface| {
        let about = format!("{} More in {}.", surface.about, surface.page);
        TagBuilder::new().name(surface.name).description(Some(about)).build()
    });
    OpenApiBuilder::new()
        .info(info.build())
        .paths(paths)
        .components(Some(components()))
        .tags(Some(tags.collect::<Vec<_>>()))
        .build()
}

fn operation(surface: &Surface, route: &Route) -> utoipa::openapi::path::Operation {
    let role = match route.role {
        None => "No token is needed".to_owned(),
        Some(role) => format!("Needs the role {}", role.as_str()),
    };
    let mut operation = OperationBuilder::new()
        .tag(surface.name)
        .operation_id(Some(operation_id(route)))
        .summary(Some(route.summary))
        .description(Some(format!("{role}. More in {}.", surface.page)));
    let path_fields =
        variables(route.path).map(|name| Field::text(name, "as a listing or an earlier answer names it").required());
    for field in path_fields {
        operation = operation.parameter(parameter(&field, ParameterIn::Path));
    }
    for field in route.query {
        operation = operation.parameter(parameter(field, ParameterIn::Query));
    }
    for field in route.headers {
        operation = operation.parameter(parameter(field, ParameterIn::Header));
    }
    if route.verb == Verb::Post && takes_key(route.path) {
        operation = operation.parameter(parameter(&IDEMPOTENCY_KEY, ParameterIn::Header));
    }
    if !route.bodies.is_empty() {
        let mut body = RequestBodyBuilder::new().required(Some(Required::True));
        for media in route.bodies {
            body = body.content(media.content_type, content(media));
        }
        operation = operation.request_body(Some(body.build()));
    }
    let about: Vec<&str> = route.answers.iter().map(|media| media.about).collect();
    let about = if about.is_empty() { "nothing".to_owned() } else { about.join("; or ") };
    let mut answer = ResponseBuilder::new().description(about);
    for media in route.answers {
        answer = answer.content(media.content_type, content(media));
    }
    operation = operation.response(route.status, answer.build());
    let requirements: Vec<SecurityRequirement> = match route.role {
        None => Vec::new(),
        Some(role) => {
            operation = operation
                .response("401", error_response("no token, or an unknown one", surface.errors))
                .response("403", error_response("the caller lacks the role", surface.errors));
            ["bearer", "basic"].map(|scheme| SecurityRequirement::new(scheme, [role.as_str()])).into()
        }
    };
    operation
        .response("default", error_response("an error; docs/errors.md lists the codes", surface.errors))
        .securities(Some(requirements))
        .build()
}

/// Returns an id such as `get_v1_agent_runs_run_id`. It is stable, for generated clients.
fn operation_id(route: &Route) -> String {
    let mut id = route.verb.as_str().to_ascii_lowercase();
    for word in route.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        id.push('_');
        id.push_str(word);
    }
    id
}

/// Returns the names in braces.
fn variables(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn parameter(field: &Field, place: ParameterIn) -> Parameter {
    ParameterBuilder::new()
        .name(field.name)
        .parameter_in(place)
        .required(required(field))
        .description(Some(field.about))
        .schema(Some(schema(field.kind)))
        .build()
}

fn required(field: &Field) -> Required {
    if field.required { Required::True } else { Required::False }
}

fn content(media: &Media) -> utoipa::openapi::Content {
    let is_json = media.content_type == "application/json";
    let mut content = ContentBuilder::new();
    if media.fields.is_empty() && is_json {
        content = content.schema(Some(anything()));
    } else if media.fields.is_empty() {
        content = content.schema(Some(Object::with_type(Type::String)));
    } else {
        content = content.schema(Some(object(media.fields)));
    }
    let example = media.example.and_then(|text| match is_json {
        true => serde_json::from_str(text).ok(),
        false => Some(Value::String(text.to_owned())),
    });
    content.example(example).build()
}

fn object(fields: &[Field]) -> Object {
    let mut object = ObjectBuilder::new();
    for field in fields {
        object = object.property(field.name, described_schema(field));
        if field.required {
            object = object.required(field.name);
        }
    }
    object.build()
}

fn described_schema(field: &Field) -> RefOr<Schema> {
    let of_kind = schema(field.kind);
    let mut schema = if field.nullable { or_null(of_kind) } else { of_kind };
    if let RefOr::T(schema) = &mut schema {
        let description = match schema {
            Schema::Object(object) => Some(&mut object.description),
            Schema::Array(array) => Some(&mut array.description),
            Schema::AnyOf(any) => Some(&mut any.description),
            _ => None,
        };
        if let Some(description) = description {
            *description = Some(field.about.to_owned());
        }
    }
    schema
}

fn schema(kind: FieldKind) -> RefOr<Schema> {
    let of = |kind: Type| Object::with_type(kind);
    let list_of = |items: Schema| ArrayBuilder::new().items(RefOr::T(items)).build();
    let list = || list_of(anything());
    let one_of = |values: &[&'static str]| {
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(values.iter().copied())).build()
    };
    match kind {
        FieldKind::Text => of(Type::String).into(),
        FieldKind::Integer => ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).build().into(),
        FieldKind::Number => of(Type::Number).into(),
        FieldKind::Flag => of(Type::Boolean).into(),
        FieldKind::List => list().into(),
        FieldKind::ListOf(fields) => list_of(Schema::Object(object(fields))).into(),
        FieldKind::Texts => list_of(Schema::Object(of(Type::String))).into(),
        FieldKind::SomeOf(values) => list_of(Schema::Object(one_of(values))).into(),
        FieldKind::Object => of(Type::Object).into(),
        FieldKind::ObjectOf(fields) => object(fields).into(),
        FieldKind::Any => RefOr::T(anything()),
        FieldKind::OneOf(values) => one_of(values).into(),
        FieldKind::TextOrNull => {
            ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null])).build().into()
        }
        FieldKind::TextOrList => AnyOfBuilder::new().item(of(Type::String)).item(list()).into(),
        FieldKind::TextOrObject => AnyOfBuilder::new().item(of(Type::String)).item(of(Type::Object)).into(),
        FieldKind::File => ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
            .build()
            .into(),
    }
}

fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    AnyOfBuilder::new().item(schema).item(Object::with_type(Type::Null)).into()
}

/// Any JSON value.
fn anything() -> Schema {
    Schema::Object(ObjectBuilder::new().schema_type(SchemaType::AnyValue).build())
}

fn error_response(about: &str, errors: ErrorSchema) -> utoipa::openapi::Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(errors.name()))).build();
    ResponseBuilder::new().description(about).content("application/json", content).build()
}

fn components() -> Components {
    let mut components = ComponentsBuilder::new();
    let all = [
        ErrorSchema::Object,
        ErrorSchema::Flat,
        ErrorSchema::OpenAi,
        ErrorSchema::Anthropic,
        ErrorSchema::Detail,
        ErrorSchema::Kusto,
        ErrorSchema::JsonRpc,
    ];
    for errors in all {
        components = components.schema(errors.name(), error_schema(errors));
    }
    let scheme = |scheme, about: &str| {
        let mut http = Http::new(scheme);
        http.description = Some(about.to_owned());
        SecurityScheme::Http(http)
    };
    components
        .security_scheme("bearer", scheme(HttpAuthScheme::Bearer, "a token of the server's settings"))
        .security_scheme("basic", scheme(HttpAuthScheme::Basic, "the token as the password"))
        .build()
}

fn error_schema(errors: ErrorSchema) -> Object {
    const MESSAGE: Field = Field::text("message", "what went wrong").required();
    const CODE: Field = Field::text("code", "the stable code").required();
    let inner = match errors {
        ErrorSchema::Detail => {
            return object(&[Field::new("detail", FieldKind::TextOrList, "what went wrong").required()]);
        }
        ErrorSchema::Flat => return object(&[Field::text("error", "what went wrong").required()]),
        ErrorSchema::Object => object(&[
            CODE,
            MESSAGE,
            Field::text("hint", "what to do about it"),
            Field::text("request_id", "the request's id").required(),
        ]),
        ErrorSchema::OpenAi => object(&[
            CODE,
            MESSAGE,
            Field::text("type", "the kind of error"),
            Field::new("param", FieldKind::TextOrNull, "the parameter that is to blame"),
        ]),
        ErrorSchema::Anthropic => object(&[MESSAGE, Field::text("type", "the kind of error").required()]),
        ErrorSchema::Kusto => object(&[
            CODE,
            MESSAGE,
            Field::text("@type", "Kusto's name of the error"),
            Field::text("@message", "what went wrong, in full"),
            Field::new("@context", FieldKind::Object, "ids, and `querentCode`, the stable code"),
            Field::new("@permanent", FieldKind::Flag, "whether the request would fail again"),
        ]),
        ErrorSchema::JsonRpc => object(&[
            Field::new("code", FieldKind::Number, "JSON-RPC's code").required(),
            MESSAGE,
            Field::new("data", FieldKind::Object, "the stable code"),
        ]),
    };
    ObjectBuilder::new().property("error", inner).required("error").build()
}

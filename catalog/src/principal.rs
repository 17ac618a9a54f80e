//! The authenticated caller. A `Principal` is built once at a door and passed to every call below it; what it may see
//! is decided here and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a caller may do. Ordered: a later role may do all that an earlier one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Query and ask.
    Read,
    /// Also create, insert and drop.
    Write,
    /// Everything, other callers' runs included.
    Admin,
}

impl Role {
    /// The role's name in settings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Write => "write",
            Role::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "read" => Ok(Role::Read),
            "write" => Ok(Role::Write),
            "admin" => Ok(Role::Admin),
            other => Err(format!("unknown role `{other}`; roles are read, write and admin")),
        }
    }
}

/// The databases a caller may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseScope {
    /// Every database.
    All,
    /// Only these, by lowercase name.
    Only(Arc<BTreeSet<String>>),
}

/// What an application says about the user on whose behalf it calls. Bound to the caller, never shown to a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserAttributes {
    /// The user's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// By name.
    pub values: BTreeMap<String, String>,
    /// Names of the groups that the user is in.
    pub groups: Vec<String>,
    /// Further values for the application's rules.
    pub security_context: Map<String, Value>,
}

/// What else is known of a caller: who it belongs to, by which policies are chosen and what they compare with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Roles that people name, beside the [`Role`] that says which kinds of statements it may send.
    pub roles: BTreeSet<String>,
    /// Groups that it is in.
    pub groups: BTreeSet<String>,
    /// Values by name, such as `region`.
    pub attributes: BTreeMap<String, String>,
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    subject: Arc<str>,
    role: Role,
    scope: DatabaseScope,
    identity: Arc<Identity>,
    attributes: Option<Arc<UserAttributes>>,
}

impl Principal {
    /// A caller named `subject` that may see every database.
    pub fn new(subject: impl Into<Arc<str>>, role: Role) -> Self {
        Self { subject: subject.into(), role, scope: DatabaseScope::All, identity: Arc::default(), attributes: None }
    }

    /// The caller of a server without tokens, and of the embedded engine.
    pub fn local_admin() -> Self {
        Self::new("local", Role::Admin)
    }

    /// The same caller, restricted to `databases` (compared without regard to case).
    pub fn with_databases<I, S>(mut self, databases: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let names = databases.into_iter().map(|name| name.as_ref().to_lowercase()).collect();
        self.scope = DatabaseScope::Only(Arc::new(names));
        self
    }

    /// The same caller, with these roles, groups and attributes.
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Arc::new(identity);
        self
    }

    /// The same caller, on behalf of a user with these attributes.
    pub fn with_attributes(mut self, attributes: UserAttributes) -> Self {
        self.attributes = Some(Arc::new(attributes));
        self
    }

    /// Another caller with the rights of `self`, but at most `role`, and with its own name.
    pub fn narrowed(&self, subject: impl Into<Arc<str>>, role: Role) -> Self {
        Self {
            subject: subject.into(),
            role: self.role.min(role),
            scope: self.scope.clone(),
            identity: Arc::clone(&self.identity),
            attributes: None,
        }
    }

    /// Its roles, groups and attributes.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The attributes of the user on whose behalf it calls.
    pub fn attributes(&self) -> Option<&UserAttributes> {
        self.attributes.as_deref()
    }

    /// The name that owns the caller's runs.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// What the caller may do.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether the caller is an administrator of all databases, who may do what is outside of any, such as on the server's disks.
    pub fn is_server_admin(&self) -> bool {
        self.role == Role::Admin && self.scope == DatabaseScope::All
    }

    /// The databases the caller may see.
    pub fn scope(&self) -> &DatabaseScope {
        &self.scope
    }

    /// Whether it is the same person as another caller, who may do and see as much with this token, as far as that can be told
    /// without the policy.
    pub fn is_same_with_as_much(&self, other: &Self) -> bool {
        let sees_databases = match (&self.scope, &other.scope) {
            (DatabaseScope::All, _) => true,
            (DatabaseScope::Only(_), DatabaseScope::All) => false,
            (DatabaseScope::Only(own), DatabaseScope::Only(others)) => others.is_subset(own),
        };
        // No policy binds an administrator.
        let is_judged_alike =
            self.role == Role::Admin || (self.identity == other.identity && self.attributes == other.attributes);
        self.subject == other.subject && self.role >= other.role && sees_databases && is_judged_alike
    }

    /// Whether the caller may know that `database` exists.
    pub fn may_see(&self, database: &str) -> bool {
        match &self.scope {
            DatabaseScope::All => true,
            DatabaseScope::Only(names) => names.contains(&database.to_lowercase()),
        }
    }
}

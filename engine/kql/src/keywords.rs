//! The words that may not be names everywhere. Nearly every keyword of KQL is an ordinary name where no operator
//! expects it; these are the exceptions, as in Kusto's own parser. Words of neither list are names everywhere.

/// Words that name what is being declared (`extend where = 1`, `datatable(search:long)`) but are not read as a name
/// without brackets.
const DECLARED_ONLY: &[&str] = &[
    "accumulate",
    "as",
    "by",
    "contains",
    "datatable",
    "externaldata",
    "find",
    "has",
    "in",
    "invoke",
    "materialize",
    "of",
    "print",
    "sample",
    "sample-distinct",
    "search",
    "set",
    "title",
    "to",
    "top-hitters",
    "top-nested",
    "toscalar",
    "totable",
    "where",
];

/// Words that are names in brackets only.
const RESERVED: &[&str] = &[
    "3Dchart",
    "FALSE",
    "False",
    "TRUE",
    "True",
    "__contextual_datatable",
    "__executeAndCache",
    "and",
    "anomalychart",
    "areachart",
    "asc",
    "assert-schema",
    "bagexpansion",
    "barchart",
    "between",
    "bin_legacy",
    "boolean",
    "card",
    "columnchart",
    "contains_cs",
    "containscs",
    "datascope",
    "date",
    "datetime",
    "decimal",
    "decodeblocks",
    "desc",
    "double",
    "dynamic",
    "endswith",
    "endswith_cs",
    "expandoutput",
    "external_data",
    "false",
    "first",
    "float",
    "granny-asc",
    "granny-desc",
    "graph-mark-components",
    "graph-match",
    "graph-shortest-paths",
    "graph-to-table",
    "graph-traverse",
    "graph-where-edges",
    "graph-where-nodes",
    "has_all",
    "has_any",
    "has_cs",
    "hasprefix",
    "hasprefix_cs",
    "hassuffix",
    "hassuffix_cs",
    "hotcache",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "in~",
    "isfuzzy",
    "ladderchart",
    "last",
    "like",
    "likecs",
    "linechart",
    "long",
    "macro-expand",
    "make-graph",
    "make-series",
    "materialized-view-combine",
    "mv-apply",
    "mv-expand",
    "nooptimization",
    "notcontains",
    "notcontainscs",
    "notlike",
    "notlikecs",
    "or",
    "others",
    "parse-kv",
    "parse-where",
    "partitioned-by",
    "piechart",
    "pivotchart",
    "project",
    "project-away",
    "project-by-names",
    "project-keep",
    "project-rename",
    "project-reorder",
    "project-smart",
    "real",
    "relaxed",
    "scatterchart",
    "simple",
    "stackedareachart",
    "startswith",
    "startswith_cs",
    "string",
    "time",
    "timechart",
    "timeline",
    "timepivot",
    "timespan",
    "treemap",
    "true",
    "typeof",
    "uint",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "ulong",
    "union",
    "uniqueid",
    "with_itemindex",
    "with_match_id",
    "with_step_name",
];

/// Parameters that any operator takes in front of its operands, `hint.` names aside.
const PARAMETERS: &[&str] = &[
    "__crossCluster",
    "__crossDB",
    "__id",
    "__isFuzzy",
    "__noWithSource",
    "__packedColumn",
    "__sourceColumnIndex",
    "bagexpansion",
    "bin_legacy",
    "decodeblocks",
    "expandoutput",
    "isfuzzy",
    "kind",
    "with_itemindex",
    "with_match_id",
    "with_source",
    "with_step_name",
    "withsource",
];

/// Where a word can be a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameUse {
    /// Everywhere.
    Anywhere,
    /// Where something is declared.
    Declared,
    /// Nowhere without brackets.
    Bracketed,
}

pub(super) fn name_use(word: &str) -> NameUse {
    if DECLARED_ONLY.binary_search(&word).is_ok() {
        NameUse::Declared
    } else if RESERVED.binary_search(&word).is_ok() {
        NameUse::Bracketed
    } else {
        NameUse::Anywhere
    }
}

/// Returns whether a word is no name of a table or a column unless it stands in brackets: `['where']`.
pub fn needs_brackets(word: &str) -> bool {
    name_use(word) != NameUse::Anywhere
}

/// Whether a word that may not be a name is probably meant as one, and not to join two expressions.
pub(super) fn could_be_meant_as_name(word: &str) -> bool {
    const JOINING: &[&str] = &["and", "as", "asc", "between", "by", "contains", "desc", "has", "in", "of", "or", "to"];
    !JOINING.contains(&word)
}

/// Keywords with a hyphen: one token wherever they stand, unlike `a-b`. None of them is a name everywhere.
pub(super) fn hyphenated() -> impl Iterator<Item = &'static str> {
    DECLARED_ONLY.iter().chain(RESERVED).copied().filter(|keyword| keyword.contains('-'))
}

pub(super) fn is_parameter(word: &str) -> bool {
    PARAMETERS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_for_the_search() {
        for list in [DECLARED_ONLY, RESERVED, PARAMETERS] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn most_keywords_are_names() {
        assert_eq!(name_use("count"), NameUse::Anywhere);
        assert_eq!(name_use("top"), NameUse::Anywhere);
        assert_eq!(name_use("where"), NameUse::Declared);
        assert_eq!(name_use("first"), NameUse::Bracketed);
    }
}

//! The parameters and results of functions. Parameters are a string with a letter for each:
//!
//! `x` any value · `s` a string, or a value that has a string form · `w` a string only · `n` a number · `i` an
//! integer · `b` a bool · `t` a datetime · `d` a timespan · `g` a guid · `j` dynamic. A bool is a number, too. Parameters after `?` are optional, and the one
//! before `*` may be repeated. A dynamic value is converted to whatever type is expected.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use crate::types::KqlType;

/// A function of a family.
pub(super) struct FunctionEntry {
    pub(super) name: &'static str,
    pub(super) parameters: &'static str,
    pub(super) returns: Returns,
    pub(super) kernel: fn(&FunctionArguments) -> Result<ArrayRef>,
    /// Whether the results for equal arguments may differ.
    pub(super) volatile: bool,
}

/// The type of a function's result.
#[derive(Clone, Copy)]
pub(super) enum Returns {
    /// Always this type.
    Is(KqlType),
    /// The common type of all arguments.
    Common,
    /// The type that a function computes.
    By(fn(&[KqlType]) -> std::result::Result<KqlType, String>),
}

/// Makes an entry of a family's table.
pub(super) const fn entry(
    name: &'static str,
    parameters: &'static str,
    returns: Returns,
    kernel: fn(&FunctionArguments) -> Result<ArrayRef>,
) -> FunctionEntry {
    FunctionEntry { name, parameters, returns, kernel, volatile: false }
}

/// Makes an entry whose results for equal arguments may differ.
pub(super) const fn volatile(
    name: &'static str,
    parameters: &'static str,
    returns: Returns,
    kernel: fn(&FunctionArguments) -> Result<ArrayRef>,
) -> FunctionEntry {
    FunctionEntry { name, parameters, returns, kernel, volatile: true }
}

impl FunctionEntry {
    /// Returns the type of the result for these arguments, or what is wrong with them.
    pub(super) fn check(&self, arguments: &[KqlType]) -> std::result::Result<KqlType, String> {
        check_arguments(self.name, self.parameters, arguments)?;
        match self.returns {
            Returns::Is(kql_type) => Ok(kql_type),
            Returns::Common => {
                common_type(arguments).ok_or_else(|| format!("the arguments of {}() must be of one type", self.name))
            }
            Returns::By(compute) => compute(arguments),
        }
    }
}

/// Checks arguments against parameters in this notation, and returns what is wrong with them.
pub(super) fn check_arguments(name: &str, parameters: &str, arguments: &[KqlType]) -> std::result::Result<(), String> {
    let (required, optional) = parameters.split_once('?').unwrap_or((parameters, ""));
    let repeats = parameters.ends_with('*');
    let letters: Vec<char> = required.chars().chain(optional.chars()).filter(|char| *char != '*').collect();
    let least = required.chars().filter(|char| *char != '*').count();
    if arguments.len() < least || (!repeats && arguments.len() > letters.len()) {
        let most = if repeats { None } else { Some(letters.len()) };
        return Err(wrong_count(name, least, most, arguments.len()));
    }
    for (index, argument) in arguments.iter().enumerate() {
        let letter = letters.get(index).or(letters.last()).copied().unwrap_or('x');
        if !accepts(letter, *argument) {
            let (number, wanted, found) = (index + 1, wanted(letter), argument.name());
            let advice = match letter {
                'w' => ", as tostring() makes it",
                'i' => ", as tolong() makes it",
                _ => "",
            };
            return Err(format!("argument {number} of {name}() must be {wanted}{advice}, not {found}"));
        }
    }
    Ok(())
}

/// Returns how a function with parameters in this notation is called. Optional ones stand in brackets.
pub(super) fn call_form(name: &str, parameters: &str) -> String {
    let (required, optional) = parameters.split_once('?').unwrap_or((parameters, ""));
    let is_letter = |char: &char| *char != '*';
    let required = required.chars().filter(is_letter).map(|letter| type_word(letter).to_owned());
    let optional = optional.chars().filter(is_letter).map(|letter| format!("[{}]", type_word(letter)));
    let more = parameters.ends_with('*').then(|| "...".to_owned());
    let arguments: Vec<String> = required.chain(optional).chain(more).collect();
    format!("{name}({})", arguments.join(", "))
}

fn type_word(letter: char) -> &'static str {
    match letter {
        's' | 'w' => "string",
        'n' => "number",
        'i' => "long",
        'b' => "bool",
        't' => "datetime",
        'd' => "timespan",
        'g' => "guid",
        'j' => "dynamic",
        _ => "value",
    }
}

fn wrong_count(name: &str, least: usize, most: Option<usize>, found: usize) -> String {
    let wanted = match most {
        Some(most) if most == least => format!("{least}"),
        Some(most) => format!("{least} to {most}"),
        None => format!("at least {least}"),
    };
    format!("{name}() takes {wanted} arguments, not {found}")
}

fn accepts(letter: char, argument: KqlType) -> bool {
    if argument == KqlType::Dynamic {
        return true;
    }
    match letter {
        'n' => argument.is_numeric() || argument == KqlType::Bool,
        'i' => matches!(argument, KqlType::Int | KqlType::Long | KqlType::Bool),
        'g' => argument == KqlType::Guid,
        'b' => argument == KqlType::Bool || argument.is_numeric(),
        't' => argument == KqlType::DateTime,
        'd' => argument == KqlType::TimeSpan,
        'w' => argument == KqlType::String,
        'j' => false,
        _ => true,
    }
}

fn wanted(letter: char) -> &'static str {
    match letter {
        'n' => "a number",
        'i' => "a whole number",
        'b' => "a bool",
        't' => "a datetime",
        'd' => "a timespan",
        'g' => "a guid",
        'w' => "a string",
        'j' => "dynamic",
        _ => "a value",
    }
}

/// Returns the type that values of all these types convert to.
pub(crate) fn common_type(types: &[KqlType]) -> Option<KqlType> {
    let (first, rest) = types.split_first()?;
    rest.iter().try_fold(*first, |common, next| common_of_two(common, *next))
}

fn common_of_two(left: KqlType, right: KqlType) -> Option<KqlType> {
    use KqlType::{Bool, Decimal, Dynamic, Guid, Int, Long, Real, String};
    if left == right {
        return Some(left);
    }
    match (left, right) {
        (Dynamic, _) | (_, Dynamic) => Some(Dynamic),
        (Decimal, Int | Long | Real) | (Int | Long | Real, Decimal) => Some(Decimal),
        (Real, Int | Long | Bool) | (Int | Long | Bool, Real) => Some(Real),
        (Long, Int | Bool) | (Int | Bool, Long) => Some(Long),
        (Int, Bool) | (Bool, Int) => Some(Int),
        (String, Guid) | (Guid, String) => Some(String),
        _ => None,
    }
}

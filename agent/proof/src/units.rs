//! Units: that of a number, by the words behind it or the currency before it, and that of a column, by its name. What is
//! measured in one is said in another of the same kind: kilograms in tonnes, cents in euros, degrees Celsius in Fahrenheit.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::foreign_numbers::without_added_part;
use super::numbers::CURRENCIES;
use super::rows::ProofRows;
use super::scales::scale_of;
use super::scales::scale_of_column;
use super::tokens::TextToken;

/// What a unit measures.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    Power,
    Energy,
    Area,
    Mass,
    Time,
    /// Months and years, which have no number of days.
    Calendar,
    Volume,
    Length,
    Speed,
    Bytes,
    Temperature,
    Money,
}

use Quantity::{Area, Bytes, Calendar, Energy, Length, Mass, Money, Power, Speed, Temperature, Time, Volume};

/// What a number is measured in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeasureUnit {
    quantity: Quantity,
    /// What one of it is in the least of its kind.
    size: f64,
    /// Where its zero is: that of a temperature is not the zero of another.
    zero: f64,
}

const CELSIUS: MeasureUnit = MeasureUnit { quantity: Temperature, size: 1.0, zero: 273.15 };
const FAHRENHEIT: MeasureUnit = MeasureUnit { quantity: Temperature, size: 5.0 / 9.0, zero: 459.67 * 5.0 / 9.0 };
const KELVIN: MeasureUnit = MeasureUnit::of(Temperature, 1.0);
const CENT: MeasureUnit = MeasureUnit::of(Money, 0.01);
const CURRENCY: MeasureUnit = MeasureUnit::of(Money, 1.0);

/// Units of one word by what they measure, each with what one of it is in the least.
const UNITS: &[(Quantity, f64, &str)] = &[
    (Power, 1.0, "w wp watt watts"),
    (Power, 1e3, "kw kwp kilowatt kilowatts"),
    (Power, 1e6, "mw mwp megawatt megawatts"),
    (Power, 1e9, "gw gwp gigawatt gigawatts"),
    (Energy, 1.0, "wh"),
    (Energy, 1e3, "kwh kilowattstunde kilowattstunden kilowattheure kilowattheures"),
    (Energy, 1e6, "mwh megawattstunde megawattstunden mégawattheure mégawattheures"),
    (Energy, 1e9, "gwh gigawattstunde gigawattstunden"),
    (Area, 1.0, "m2 m² sqm qm quadratmeter quadratmetern"),
    (Area, 1e4, "ha hectare hectares hektar hectárea hectáreas"),
    (Area, 1e6, "km2 km² sqkm quadratkilometer quadratkilometern"),
    (Area, 4_046.856, "acre acres"),
    (Area, 0.092_903_04, "sqft ft2 ft²"),
    (Area, 2_589_988.11, "mi2 mi² sqmi"),
    (Mass, 0.001, "mg milligram milligrams"),
    (Mass, 1.0, "g gram grams gramm gramme grammes gramos"),
    (Mass, 1e3, "kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramos"),
    (Mass, 1e6, "t ton tons tonne tonnes tonnen tonelada toneladas tonnellata tonnellate"),
    (Mass, 453.592_37, "lb lbs pound pounds"),
    (Mass, 28.349_523, "oz ounce ounces"),
    (Volume, 0.001, "ml millilitre millilitres milliliter milliliters"),
    (Volume, 0.01, "cl"),
    (Volume, 1.0, "l litre litres liter liters litern litros litri"),
    (Volume, 100.0, "hl hectolitre hectolitres hektoliter"),
    (Volume, 1_000.0, "m3 m³ kubikmeter kubikmetern"),
    (Volume, 3.785_411_784, "gallon gallons"),
    (Time, 0.001, "ms millisecond milliseconds"),
    (Time, 1.0, "s sec secs second seconds sekunden segundos secondes secondi"),
    (Time, 60.0, "min mins minute minutes minuten minutos minuti"),
    (Time, 3_600.0, "h hr hrs hour hours stunde stunden heure heures hora horas uur uren ore"),
    (Time, 86_400.0, "day days tag tage tagen jour jours día días dia dias giorni dagen"),
    (Time, 604_800.0, "week weeks woche wochen semaine semaines semana semanas settimane weken"),
    (Time, 1_209_600.0, "fortnight fortnights"),
    (Calendar, 1.0, "months monate monaten mois meses mesi maanden"),
    (Calendar, 12.0, "years jahre jahren ans années años anos anni jaren"),
    (Length, 0.001, "mm millimetre millimetres millimeter millimeters"),
    (Length, 0.01, "cm centimetre centimetres centimeter centimeters zentimeter"),
    (Length, 1.0, "m metre metres meter meters metern mètre mètres metros metri"),
    (
        Length,
        1_000.0,
        "km kilometre kilometres kilometer kilometers kilometern kilomètres kilómetros quilômetros chilometri",
    ),
    (Length, 0.0254, "inch inches"),
    (Length, 0.3048, "ft foot feet"),
    (Length, 0.9144, "yd yard yards"),
    (Length, 1_609.344, "mi mile miles meilen"),
    (Speed, 1.0 / 3.6, "kmh kph"),
    (Speed, 0.447_04, "mph"),
    (Speed, 0.514_444, "knot knots kn"),
    (Bytes, 1.0, "byte bytes"),
    (Bytes, 1e3, "kb kilobyte kilobytes"),
    (Bytes, 1e6, "mb megabyte megabytes"),
    (Bytes, 1e9, "gb gigabyte gigabytes"),
    (Bytes, 1e12, "tb terabyte terabytes"),
    (Bytes, 1_024.0, "kib"),
    (Bytes, 1_048_576.0, "mib"),
    (Bytes, 1_073_741_824.0, "gib"),
    (Bytes, 1_099_511_627_776.0, "tib"),
];
/// Units of several words, by which they begin; the longer ones come before those that they begin with.
const PHRASES: &[(Quantity, f64, &str)] = &[
    (Speed, 1.0 / 3.6, "km/h|km per hour|kilometres per hour|kilometers per hour|stundenkilometer"),
    (Speed, 0.447_04, "miles per hour|mi/h"),
    (Speed, 1.0, "m/s|metres per second|meters per second"),
    (Energy, 1.0, "watt-hour|watt hour"),
    (Energy, 1e3, "kilowatt-hour|kilowatt hour|kilovatios hora|kilovatios-hora"),
    (Energy, 1e6, "megawatt-hour|megawatt hour"),
    (Energy, 1e9, "gigawatt-hour|gigawatt hour"),
    (Area, 0.092_903_04, "sq ft|sq. ft|square feet|square foot"),
    (Area, 2_589_988.11, "sq mi|sq. mi|square mile"),
    (Area, 1e6, "sq km|sq. km|square kilomet|kilomètres carrés|kilómetros cuadrados|vierkante kilometer"),
    (Area, 1.0, "sq m|sq. m|square met|mètres carrés|metros cuadrados|metros quadrados|metri quadr|vierkante meter"),
    (Volume, 1_000.0, "cubic met|metros cúbicos|mètres cubes|metri cubi|kubieke meter"),
];
/// Words and marks between a number and its scale of temperature.
const DEGREES: [&str; 12] =
    ["°", "º", "˚", "degrees", "degree", "deg", "grad", "degrés", "degré", "grados", "graus", "graden"];
/// Parts of the names of columns of temperatures.
const OF_TEMPERATURE: [&str; 15] = [
    "low", "high", "min", "max", "avg", "mean", "air", "water", "soil", "indoor", "outdoor", "body", "tmax", "tmin",
    "tavg",
];
/// Parts of the names of columns of prices.
const PRICES: [&str; 9] = ["price", "cost", "fee", "fare", "wage", "preis", "kosten", "prix", "precio"];
/// Coins, a hundred of which make one of their currency.
const COINS: [&str; 8] = ["cent", "cents", "ct", "pence", "centimes", "centavos", "céntimos", "centesimi"];
/// Words for a currency, behind a number and in the names of columns: of those that are told apart, and of others.
const CURRENCY_WORDS: [(char, &[&str]); 3] =
    [('$', &["usd", "dollar", "dollars"]), ('€', &["eur", "euro", "euros"]), ('£', &["gbp"])];
const OTHER_CURRENCIES: [&str; 5] = ["chf", "francs", "franken", "dólares", "yen"];

impl MeasureUnit {
    const fn of(quantity: Quantity, size: f64) -> Self {
        Self { quantity, size, zero: 0.0 }
    }

    /// Whether both measure the same.
    pub(super) fn is_of_kind(self, other: Self) -> bool {
        self.quantity == other.quantity
    }

    /// Whether it is a currency, or a part of one.
    pub(super) fn is_money(self) -> bool {
        self.quantity == Money
    }

    /// Whether it is a hundredth of a currency.
    pub(super) fn is_coin(self) -> bool {
        self == CENT
    }

    /// Whether it measures time.
    pub(super) fn is_of_time(self) -> bool {
        self.quantity == Time
    }

    /// Whether it is a second.
    pub(super) fn is_second(self) -> bool {
        self == Self::of(Time, 1.0)
    }

    /// Whether it is larger than another one of its kind.
    pub(super) fn is_above(self, other: Self) -> bool {
        self.size > other.size
    }

    /// Whether the zero of both is the same, so that one is so many of the other.
    pub(super) fn shares_zero(self, other: Self) -> bool {
        self.zero == other.zero
    }

    /// Returns by what a difference in this unit is multiplied to be one in another.
    pub(super) fn factor_to(self, other: Self) -> f64 {
        self.size / other.size
    }

    /// Returns what a value is in another unit of the kind.
    pub(super) fn convert(self, value: f64, other: Self) -> f64 {
        if self.zero == other.zero {
            return value * self.factor_to(other);
        }
        (value * self.size + self.zero - other.zero) / other.size
    }

    /// Returns the SQL that computes it.
    pub(super) fn conversion(self, value: f64, other: Self) -> String {
        if self.zero == other.zero {
            return format!("1.0e0 * {value:?} * {:?}", self.factor_to(other));
        }
        format!("(1.0e0 * ({value:?}) * {:?} + {:?} - {:?}) / {:?}", self.size, self.zero, other.zero, other.size)
    }

    /// Returns a value in the smallest unit of its kind.
    pub(super) fn least(self, value: f64) -> f64 {
        value * self.size
    }
}

/// Whether a number has a unit beside it, and a column that is called by another unit of the same: 42.6 hours are no cell of
/// `mean_minutes`, and 39.1 °F none of `temp_c`.
pub(super) fn is_in_other_unit(result: &ProofRows, column: usize, token: &TextToken, clause: &str) -> bool {
    // Of `mean_temp` and `rain_mm` the millimetres are those of the rain.
    let of_number = unit_behind(token, clause).filter(|unit| !unit.is_of_time() && !unit.is_money());
    if let Some(unit) = of_number.filter(|_| result.rows.len() > 1 && unit_at(result, column).is_none()) {
        let has_unit = |other: usize| unit_at(result, other) == Some(unit);
        if (0..result.columns.len()).any(has_unit) {
            return true;
        }
    }
    let units = unit_beside(token, clause).zip(unit_at(result, column));
    let of_column = result.columns.get(column).and_then(|name| currency_of(name));
    let is_in_other_currency =
        || of_column.is_some_and(|own| currency_beside(token, clause).is_some_and(|beside| beside != own));
    units.is_some_and(|(unit, of_column)| unit.is_of_kind(of_column) && unit != of_column) || is_in_other_currency()
}

fn is_money_word(word: &str) -> bool {
    currency_called(word).is_some() || OTHER_CURRENCIES.contains(&word)
}

fn currency_called(word: &str) -> Option<char> {
    CURRENCY_WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(sign, _)| *sign)
}

fn currency_of(name: &str) -> Option<char> {
    let name = name.to_lowercase();
    let name = name.split("_per_").next().unwrap_or_default();
    name.split(|c: char| !c.is_alphanumeric()).find_map(currency_called)
}

fn currency_beside(token: &TextToken, clause: &str) -> Option<char> {
    let behind = behind_number(token, clause).to_lowercase();
    let signs = [clause[..token.start].trim_end().chars().next_back(), behind.chars().next()];
    let sign = signs.into_iter().flatten().find(|c| CURRENCY_WORDS.iter().any(|(sign, _)| sign == c));
    sign.or_else(|| currency_called(behind.split(|c: char| !c.is_alphanumeric()).next()?))
}

/// Whether a number and a column are of units that measure different things: 8 tonnes are no cell of `hectares`.
pub(super) fn is_of_other_dimension(result: &ProofRows, column: usize, token: &TextToken, clause: &str) -> bool {
    let units = unit_behind(token, clause).zip(unit_at(result, column));
    units.is_some_and(|(unit, of_column)| !unit.is_of_kind(of_column))
}

/// Returns by what a column's values are multiplied to be in the unit behind a number, where both have one of the same kind.
pub(super) fn factor_to_unit(column: &str, token: &TextToken, clause: &str) -> Option<f64> {
    let of_column = unit_of_column(&column.to_lowercase())?;
    let unit = unit_behind(token, clause)?;
    (unit.is_of_kind(of_column) && unit.zero == of_column.zero).then(|| of_column.factor_to(unit))
}

/// Returns the unit of a column of a result. `Temp_min`, and `weight_min` beside `weight_max`, are minimums and no minutes.
pub(super) fn unit_at(result: &ProofRows, column: usize) -> Option<MeasureUnit> {
    let name = result.columns.get(column)?.to_lowercase();
    let has_maximum = |stem: &str| result.columns.iter().any(|other| other.to_lowercase() == format!("{stem}_max"));
    let minimum_of = name.strip_suffix("_min").filter(|stem| stem.contains("temp") || has_maximum(stem));
    unit_of_column(minimum_of.unwrap_or(&name))
}

/// Whether the last part of a column's name is a unit: `usd`, `km`, `musd`, `pct`.
pub(super) fn is_unit_of_column(part: &str) -> bool {
    ["pct", "percent"].contains(&part)
        || unit_of_column(&format!("x_{part}")).is_some()
        || scale_of_column(part).is_some()
}

/// Returns the unit by which a lowercase column is called.
fn unit_of_column(name: &str) -> Option<MeasureUnit> {
    // `Min_price` is of a minimum, `price_per_m2` is no area.
    let name = name.strip_prefix("min_").unwrap_or(name);
    let name = name.split("_per_").next().unwrap_or(name);
    let parts = || name.rsplit(|c: char| !c.is_alphanumeric()).filter(move |part| *part != name || part.len() > 1);
    // `Low_c`, and no `vitamin_c`.
    let is_warm = name.contains("temp") || parts().any(|part| OF_TEMPERATURE.contains(&part));
    let scale = |part: &str| match part {
        "celsius" | "centigrade" | "degc" => Some(CELSIUS),
        "fahrenheit" | "degf" => Some(FAHRENHEIT),
        "kelvin" => Some(KELVIN),
        "c" if is_warm => Some(CELSIUS),
        "f" if is_warm => Some(FAHRENHEIT),
        _ => None,
    };
    let money = |part: &str| match part {
        part if COINS.contains(&part) => Some(CENT),
        part if is_money_word(part) => Some(CURRENCY),
        _ => None,
    };
    // What a kilogram costs is no mass.
    let is_price = parts().any(|part| PRICES.contains(&part));
    let unit = |part: &str| if is_price { None } else { unit_called(part).or_else(|| scale(part)) };
    parts().find_map(|part| unit(part).or_else(|| money(part)))
}

/// Returns the unit behind a number, or the currency beside it.
pub(super) fn unit_beside(token: &TextToken, clause: &str) -> Option<MeasureUnit> {
    let has_sign = token.text.contains(CURRENCIES) || clause[..token.start].trim_end().ends_with(CURRENCIES);
    if has_sign {
        return Some(CURRENCY);
    }
    let behind = behind_number(token, clause).to_lowercase();
    let word = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match word {
        _ if behind.starts_with(CURRENCIES) || is_money_word(word) => Some(CURRENCY),
        word if COINS.contains(&word) => Some(CENT),
        _ => unit_behind(token, clause),
    }
}

/// Returns the unit behind a number, but for money.
pub(super) fn unit_behind(token: &TextToken, clause: &str) -> Option<MeasureUnit> {
    let behind = behind_number(token, clause).to_lowercase();
    if let Some(scale) = temperature_behind(&behind) {
        return Some(scale);
    }
    let is_phrase = |phrases: &&str| phrases.split('|').any(|phrase| behind.starts_with(phrase));
    if let Some((quantity, size, _)) = PHRASES.iter().find(|(_, _, phrases)| is_phrase(phrases)) {
        return Some(MeasureUnit::of(*quantity, *size));
    }
    unit_called(behind.split(|c: char| !c.is_alphanumeric()).next()?)
}

/// What is looked at behind a number, in bytes.
const LONGEST_UNIT: usize = 100;

/// Returns what stands behind a number, and behind its scale: `tonnes` of `2.5 million tonnes`.
fn behind_number<'t>(token: &TextToken, clause: &'t str) -> &'t str {
    let behind = without_added_part(&clause[token.end..]).trim_start_matches([' ', '-', '\u{a0}', '\u{202f}']);
    let word = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let behind = if scale_of(word).is_some() { behind[word.len()..].trim_start() } else { behind };
    &behind[..behind.floor_char_boundary(LONGEST_UNIT)]
}

/// Returns the scale of temperature with which a lowercase text begins.
fn temperature_behind(behind: &str) -> Option<MeasureUnit> {
    let degrees = DEGREES.iter().find_map(|word| behind.strip_prefix(word));
    let scale = degrees.unwrap_or(behind).trim_start();
    let word = scale.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match word {
        "c" if degrees.is_some() => Some(CELSIUS),
        "f" if degrees.is_some() => Some(FAHRENHEIT),
        "celsius" | "centigrade" => Some(CELSIUS),
        "fahrenheit" => Some(FAHRENHEIT),
        "kelvin" => Some(KELVIN),
        _ if scale.starts_with('℃') => Some(CELSIUS),
        _ if scale.starts_with('℉') => Some(FAHRENHEIT),
        _ => None,
    }
}

/// Whether a lowercase word is a unit.
pub(super) fn is_unit_called(word: &str) -> bool {
    unit_called(word).is_some()
}

/// Whether two lowercase words are the same unit: `ha` and `hectares`.
pub(super) fn is_same_unit(one: &str, other: &str) -> bool {
    unit_called(one).is_some_and(|unit| unit_called(other) == Some(unit))
}

fn unit_called(word: &str) -> Option<MeasureUnit> {
    static BY_NAME: LazyLock<HashMap<&str, MeasureUnit>> = LazyLock::new(|| {
        let named = |(quantity, size, names): &'static (Quantity, f64, &str)| {
            names.split(' ').map(|name| (name, MeasureUnit::of(*quantity, *size)))
        };
        // The first of a name holds.
        UNITS.iter().rev().flat_map(named).collect()
    });
    BY_NAME.get(word).copied()
}

//! Conversions between units. Each unit is a factor of a common one.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

const REAL: Returns = Returns::Is(KqlType::Real);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("convert_angle", "nww", REAL, |arguments| converted(arguments, |name| by_name(ANGLES, name))),
    entry("convert_energy", "nww", REAL, |arguments| converted(arguments, |name| by_name(ENERGIES, name))),
    entry("convert_force", "nww", REAL, |arguments| converted(arguments, |name| by_name(FORCES, name))),
    entry("convert_length", "nww", REAL, |arguments| converted(arguments, |name| by_name(LENGTHS, name))),
    entry("convert_mass", "nww", REAL, |arguments| converted(arguments, |name| by_name(MASSES, name))),
    entry("convert_speed", "nww", REAL, |arguments| converted(arguments, |name| by_name(SPEEDS, name))),
    entry("convert_temperature", "nww", REAL, |arguments| converted(arguments, temperature)),
    entry("convert_volume", "nww", REAL, |arguments| converted(arguments, |name| by_name(VOLUMES, name))),
];

/// A unit: `common = number * factor + offset`.
#[derive(Clone, Copy)]
struct Unit {
    factor: f64,
    offset: f64,
}

/// Degrees.
const ANGLES: &[(&str, f64)] = &[
    ("Arcminute", 1.0 / 60.0),
    ("Arcsecond", 1.0 / 3_600.0),
    ("Centiradian", 0.01 * 180.0 / std::f64::consts::PI),
    ("Deciradian", 0.1 * 180.0 / std::f64::consts::PI),
    ("Degree", 1.0),
    ("Gradian", 0.9),
    ("Microdegree", 1e-6),
    ("Microradian", 1e-6 * 180.0 / std::f64::consts::PI),
    ("Millidegree", 1e-3),
    ("Milliradian", 1e-3 * 180.0 / std::f64::consts::PI),
    ("Nanodegree", 1e-9),
    ("Nanoradian", 1e-9 * 180.0 / std::f64::consts::PI),
    ("NatoMil", 9.0 / 160.0),
    ("Radian", 180.0 / std::f64::consts::PI),
    ("Revolution", 360.0),
    ("Tilt", 90.0),
];

/// Joules.
const ENERGIES: &[(&str, f64)] = &[
    ("BritishThermalUnit", 1_055.055_852_62),
    ("Calorie", 4.184),
    ("DecathermEc", 1.055_055_852_62e9),
    ("DecathermImperial", 1.055_055_852_573_48e9),
    ("DecathermUs", 1.054_804e9),
    ("ElectronVolt", 1.602_176_565e-19),
    ("Erg", 1e-7),
    ("FootPound", 1.355_817_948),
    ("GigabritishThermalUnit", 1_055.055_852_62e9),
    ("GigaelectronVolt", 1.602_176_565e-10),
    ("Gigajoule", 1e9),
    ("GigawattDay", 8.64e13),
    ("GigawattHour", 3.6e12),
    ("HorsepowerHour", 2_684_519.537_696_173),
    ("Joule", 1.0),
    ("KilobritishThermalUnit", 1_055.055_852_62e3),
    ("Kilocalorie", 4_184.0),
    ("KiloelectronVolt", 1.602_176_565e-16),
    ("Kilojoule", 1e3),
    ("KilowattDay", 8.64e7),
    ("KilowattHour", 3.6e6),
    ("MegabritishThermalUnit", 1_055.055_852_62e6),
    ("Megacalorie", 4.184e6),
    ("MegaelectronVolt", 1.602_176_565e-13),
    ("Megajoule", 1e6),
    ("MegawattDay", 8.64e10),
    ("MegawattHour", 3.6e9),
    ("Millijoule", 1e-3),
    ("TeraelectronVolt", 1.602_176_565e-7),
    ("TerawattDay", 8.64e16),
    ("TerawattHour", 3.6e15),
    ("ThermEc", 1.055_055_852_62e8),
    ("ThermImperial", 1.055_055_852_573_48e8),
    ("ThermUs", 1.054_804e8),
    ("WattDay", 86_400.0),
    ("WattHour", 3_600.0),
];

/// Newtons.
const FORCES: &[(&str, f64)] = &[
    ("Decanewton", 10.0),
    ("Dyn", 1e-5),
    ("KilogramForce", 9.806_65),
    ("Kilonewton", 1e3),
    ("KiloPond", 9.806_65),
    ("KilopoundForce", 4_448.221_615_260_5),
    ("Meganewton", 1e6),
    ("Micronewton", 1e-6),
    ("Millinewton", 1e-3),
    ("Newton", 1.0),
    ("OunceForce", 0.278_013_850_953_781_2),
    ("Poundal", 0.138_254_954_376),
    ("PoundForce", 4.448_221_615_260_5),
    ("ShortTonForce", 8_896.443_230_521),
    ("TonneForce", 9_806.65),
];

/// Meters.
const LENGTHS: &[(&str, f64)] = &[
    ("Angstrom", 1e-10),
    ("AstronomicalUnit", 1.495_978_707e11),
    ("Centimeter", 1e-2),
    ("Chain", 20.116_8),
    ("DataMile", 1_828.8),
    ("Decameter", 10.0),
    ("Decimeter", 0.1),
    ("DtpPica", 1.0 / 236.220_472_441),
    ("DtpPoint", 0.025_4 / 72.0),
    ("Fathom", 1.828_8),
    ("Foot", 0.304_8),
    ("Hand", 0.101_6),
    ("Hectometer", 100.0),
    ("Inch", 0.025_4),
    ("KilolightYear", 9.460_730_472_580_8e18),
    ("Kilometer", 1e3),
    ("Kiloparsec", 3.085_677_581_28e19),
    ("LightYear", 9.460_730_472_580_8e15),
    ("MegalightYear", 9.460_730_472_580_8e21),
    ("Megaparsec", 3.085_677_581_28e22),
    ("Meter", 1.0),
    ("Microinch", 2.54e-8),
    ("Micrometer", 1e-6),
    ("Mil", 2.54e-5),
    ("Mile", 1_609.344),
    ("Millimeter", 1e-3),
    ("Nanometer", 1e-9),
    ("NauticalMile", 1_852.0),
    ("Parsec", 3.085_677_581_28e16),
    ("PrinterPica", 1.0 / 237.106_301_584),
    ("PrinterPoint", 0.025_4 / 72.27),
    ("Shackle", 27.432),
    ("SolarRadius", 6.955_1e8),
    ("Twip", 1.0 / 56_692.913_385_826),
    ("UsSurveyFoot", 1_200.0 / 3_937.0),
    ("Yard", 0.914_4),
];

/// Kilograms.
const MASSES: &[(&str, f64)] = &[
    ("Centigram", 1e-5),
    ("Decagram", 1e-2),
    ("Decigram", 1e-4),
    ("EarthMass", 5.972_2e24),
    ("Grain", 6.479_891e-5),
    ("Gram", 1e-3),
    ("Hectogram", 0.1),
    ("Kilogram", 1.0),
    ("Kilopound", 453.592_37),
    ("Kilotonne", 1e6),
    ("LongHundredweight", 50.802_345_44),
    ("LongTon", 1_016.046_908_8),
    ("Megapound", 453_592.37),
    ("Megatonne", 1e9),
    ("Microgram", 1e-9),
    ("Milligram", 1e-6),
    ("Nanogram", 1e-12),
    ("Ounce", 0.028_349_523_125),
    ("Pound", 0.453_592_37),
    ("ShortHundredweight", 45.359_237),
    ("ShortTon", 907.184_74),
    ("Slug", 14.593_903),
    ("SolarMass", 1.989_47e30),
    ("Stone", 6.350_293_18),
    ("Tonne", 1e3),
];

/// Meters a second.
const SPEEDS: &[(&str, f64)] = &[
    ("CentimeterPerHour", 1e-2 / 3_600.0),
    ("CentimeterPerMinute", 1e-2 / 60.0),
    ("CentimeterPerSecond", 1e-2),
    ("DecimeterPerMinute", 0.1 / 60.0),
    ("DecimeterPerSecond", 0.1),
    ("FootPerHour", 0.304_8 / 3_600.0),
    ("FootPerMinute", 0.304_8 / 60.0),
    ("FootPerSecond", 0.304_8),
    ("InchPerHour", 0.025_4 / 3_600.0),
    ("InchPerMinute", 0.025_4 / 60.0),
    ("InchPerSecond", 0.025_4),
    ("KilometerPerHour", 1.0 / 3.6),
    ("KilometerPerMinute", 1e3 / 60.0),
    ("KilometerPerSecond", 1e3),
    ("Knot", 1_852.0 / 3_600.0),
    ("MeterPerHour", 1.0 / 3_600.0),
    ("MeterPerMinute", 1.0 / 60.0),
    ("MeterPerSecond", 1.0),
    ("MicrometerPerMinute", 1e-6 / 60.0),
    ("MicrometerPerSecond", 1e-6),
    ("MilePerHour", 0.447_04),
    ("MillimeterPerHour", 1e-3 / 3_600.0),
    ("MillimeterPerMinute", 1e-3 / 60.0),
    ("MillimeterPerSecond", 1e-3),
    ("NanometerPerMinute", 1e-9 / 60.0),
    ("NanometerPerSecond", 1e-9),
    ("UsSurveyFootPerHour", 1_200.0 / 3_937.0 / 3_600.0),
    ("UsSurveyFootPerMinute", 1_200.0 / 3_937.0 / 60.0),
    ("UsSurveyFootPerSecond", 1_200.0 / 3_937.0),
    ("YardPerHour", 0.914_4 / 3_600.0),
    ("YardPerMinute", 0.914_4 / 60.0),
    ("YardPerSecond", 0.914_4),
];

/// Cubic meters.
const VOLUMES: &[(&str, f64)] = &[
    ("AcreFoot", 1.0 / 0.000_810_714),
    ("AuTablespoon", 2e-5),
    ("BoardFoot", 2.359_737_215_8e-3),
    ("Centiliter", 1e-5),
    ("CubicCentimeter", 1e-6),
    ("CubicDecimeter", 1e-3),
    ("CubicFoot", 0.028_316_846_592),
    ("CubicHectometer", 1e6),
    ("CubicInch", 1.638_706_4e-5),
    ("CubicKilometer", 1e9),
    ("CubicMeter", 1.0),
    ("CubicMicrometer", 1e-18),
    ("CubicMile", 4.168_181_825_440_58e9),
    ("CubicMillimeter", 1e-9),
    ("CubicYard", 0.764_554_857_984),
    ("Decaliter", 1e-2),
    ("DecausGallon", 3.785_411_784e-2),
    ("Deciliter", 1e-4),
    ("DeciusGallon", 3.785_411_784e-4),
    ("HectocubicFoot", 2.831_684_659_2),
    ("HectocubicMeter", 100.0),
    ("Hectoliter", 0.1),
    ("HectousGallon", 0.378_541_178_4),
    ("ImperialBeerBarrel", 0.163_659_24),
    ("ImperialGallon", 4.546_09e-3),
    ("ImperialOunce", 2.841_306_249_996_29e-5),
    ("ImperialPint", 5.682_612_5e-4),
    ("KilocubicFoot", 28.316_846_592),
    ("KilocubicMeter", 1e3),
    ("KiloimperialGallon", 4.546_09),
    ("Kiloliter", 1.0),
    ("KilousGallon", 3.785_411_784),
    ("Liter", 1e-3),
    ("MegacubicFoot", 28_316.846_592),
    ("MegaimperialGallon", 4_546.09),
    ("Megaliter", 1e3),
    ("MegausGallon", 3_785.411_784),
    ("MetricCup", 2.5e-4),
    ("MetricTeaspoon", 5e-6),
    ("Microliter", 1e-9),
    ("Milliliter", 1e-6),
    ("OilBarrel", 0.158_987_294_928),
    ("UkTablespoon", 1.5e-5),
    ("UsBeerBarrel", 0.117_347_765_8),
    ("UsCustomaryCup", 2.365_882_365e-4),
    ("UsGallon", 3.785_411_784e-3),
    ("UsLegalCup", 2.4e-4),
    ("UsOunce", 2.957_352_956_25e-5),
    ("UsPint", 4.731_764_73e-4),
    ("UsQuart", 9.463_529_46e-4),
    ("UsTablespoon", 1.478_676_478_125e-5),
    ("UsTeaspoon", 4.928_921_593_75e-6),
];

fn by_name(units: &[(&str, f64)], name: &str) -> Option<Unit> {
    let (_, factor) = units.iter().find(|(known, _)| *known == name)?;
    Some(Unit { factor: *factor, offset: 0.0 })
}

/// Returns the conversion to kelvins.
fn temperature(name: &str) -> Option<Unit> {
    let (factor, offset) = match name {
        "Kelvin" => (1.0, 0.0),
        "DegreeCelsius" => (1.0, 273.15),
        "MillidegreeCelsius" => (1e-3, 273.15),
        "SolarTemperature" => (5_778.0, 0.0),
        "DegreeFahrenheit" => (5.0 / 9.0, 459.67 * 5.0 / 9.0),
        "DegreeRankine" => (5.0 / 9.0, 0.0),
        "DegreeReaumur" => (1.25, 273.15),
        "DegreeDelisle" => (-2.0 / 3.0, 373.15),
        "DegreeNewton" => (100.0 / 33.0, 273.15),
        "DegreeRoemer" => (40.0 / 21.0, 273.15 - 7.5 * 40.0 / 21.0),
        _ => return None,
    };
    Some(Unit { factor, offset })
}

/// Returns null for an unknown unit.
fn converted(arguments: &FunctionArguments, unit: impl Fn(&str) -> Option<Unit>) -> Result<ArrayRef> {
    let (numbers, from, to) = (arguments.reals(0)?, arguments.strings(1)?, arguments.strings(2)?);
    arguments.make_reals(|row| {
        let (from, to) = (unit(from.get(row))?, unit(to.get(row))?);
        Some((numbers.get(row)? * from.factor + from.offset - to.offset) / to.factor)
    })
}

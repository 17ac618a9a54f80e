//! What a question in German, French, Spanish, Portuguese, Italian or Dutch asks for, and words of these languages and of
//! English for the same things. No grammar is read: only the thing behind `wie viele`, `quelle` and the like is judged.

use super::vocabulary::Vocabulary;
use super::words::unaccented;
use super::{AskedGap, GapKind};

/// Groups of words for the same thing in these languages, each ended by a semicolon, without accents. A group has all words
/// that data may use for it: where none of them is a name, the thing is not there.
const CONCEPTS: &str = "\
    electricity power strom elektrizitat stromverbrauch electricite electricidad eletricidade elettricita elektriciteit \
    energie energia kwh; \
    balcony terrace balkon terrasse balcon terraza varanda balcone; \
    dog hund chien perro cachorro cane hond; \
    rent miete kaltmiete loyer alquiler renta aluguel renda affitto canone huur; \
    apartment flat wohnung whg appartement logement piso apartamento vivienda appartamento alloggio woning; \
    tenant renter mieter locataire inquilino arrendatario inquilina huurder; \
    order auftrag bestellung commande pedido encomenda ordine bestelling orden; \
    invoice bill rechnung beleg facture factura fatura fattura factuur; \
    contract agreement vertrag contrat contrato contratto overeenkomst; \
    repair maintenance reparatur wartung instandhaltung reparation entretien reparacion mantenimiento reparacao manutencao \
    riparazione manutenzione reparatie onderhoud; \
    appointment termin rendezvous cita consulta consultation appuntamento afspraak; \
    email mail courriel correo posta epost; \
    stock inventory lager bestand inventaire existencias inventario estoque giacenza voorraad; \
    coupon voucher gutschein bon cupon vale buono; \
    loyalty treue treuekarte fidelite fidelidad fidelidade fedelta klantenkaart; \
    driver fahrer chauffeur conductor motorista condutor autista conducente bestuurder; \
    landlord owner eigentumer vermieter proprietaire propietario proprietario eigenaar; \
    salary wage pay payroll earnings compensation income gehalt lohn verdienst bezuge einkommen besoldung salaire paie \
    remuneration traitement salario sueldo nomina remuneracion ordenado remuneracao vencimento stipendio retribuzione \
    salaris loon; \
    phone telephone telefon telefonnummer fernsprecher handy mobil rufnummer telefono movil celular telemovel telefone \
    cellulare telefoon telefoonnummer mobiel tel portable fone; \
    insurance insurer versicherung versicherer krankenkasse assurance assureur mutuelle seguro seguradora aseguradora \
    assicurazione verzekering verzekeraar poliza police apolice polis; \
    fuel diesel gasoline petrol kraftstoff treibstoff benzin tanken tankung carburant gazole essence gasoil combustible \
    combustivel gasolina abastecimento carburante brandstof benzine litros liter; \
    allergy allergie alergia allergia unvertraglichkeit intolerance intolerancia; \
    vaccination vaccine immunization jab impfung impfstoff vaccin vacuna vacunacion vacina vacinacao vaccino \
    vaccinazione vaccinatie inenting; \
    microchip chip transponder puce; \
    rating review score stars bewertung note punkte sterne avis notation puntuacion valoracion calificacion nota \
    avaliacao pontuacao valutazione punteggio voto beoordeling waardering cijfer resena; \
    accident crash collision unfall unfalle zusammenstos sinistre accidente choque siniestro acidente colisao sinistro \
    incidente ongeluk ongeval aanrijding schade; \
    woman women man men sex gender female male geschlecht frau frauen mann manner weiblich mannlich sexe femme homme \
    sexo genero mujer hombre mulher homem sesso donna uomo geslacht vrouw; \
    book buch bucher livre libro livro boek titel titre titulo titolo title exemplar exemplaire ejemplar; \
    reader leser leserin lecteur lectrice lector leitor lettore lezer member mitglied adherent abonne usager emprunteur \
    entleiher socio membre utente lid borrower; \
    ticket karte eintrittskarte billet entrada boleto bilhete ingresso biglietto kaartje kaart verkauft verk vendu \
    vendido venduto verkocht; \
    fine penalty penalite busgeld strafe strafzettel amende contravention multa sancion coima ammenda boete bekeuring; \
    tyre tire reifen pneu neumatico llanta pneumatico band; \
    teacher educator lehrer lehrerin erzieher erzieherin lehrkraft dozent enseignant professeur maitresse maitre \
    educatrice educateur animateur profesor maestro docente educador professor professora insegnante maestra leraar \
    leerkracht docent personal personnel; \
    doctor physician arzt arztin medecin docteur medico doctor dottore dokter arts personal personnel medewerker; \
    nurse krankenschwester pfleger pflegekraft infirmier infirmiere enfermera enfermero enfermeira enfermeiro \
    infermiera infermiere verpleegkundige zuster; \
    lawyer attorney solicitor anwalt anwaltin rechtsanwalt avocat abogado advogado avvocato advocaat; \
    password passwort kennwort motdepasse contrasena senha parola wachtwoord; \
    religion konfession glaube confession religione godsdienst geloof; \
    weather temperature rain wetter temperatur regen niederschlag meteo pluie tiempo clima lluvia temperatura tempo \
    chuva pioggia weer neerslag; \
    parking parkplatz stellplatz stationnement aparcamiento estacionamento estacionamiento parcheggio parkeerplaats; \
    barrel cask fass fasser barrique tonneau fut barrica barril tonel botte vat; \
    complaint reklamation beschwerde reclamation plainte queja reclamo reclamacion reclamacao queixa reclamo klacht; \
    refund ruckerstattung erstattung remboursement reembolso devolucion rimborso terugbetaling retour; \
    discount rebate rabatt nachlass skonto remise rabais reduction descuento rebaja desconto sconto korting; \
    tax vat steuer mehrwertsteuer mwst umsatzsteuer taxe impot tva impuesto iva imposto tributo tassa imposta \
    belasting btw; \
    customer client buyer kunde kundin kaufer abnehmer auftraggeber client acheteur cliente comprador klant afnemer koper \
    acquirente kunden firma debitor; \
    supplier vendor lieferant zulieferer fournisseur proveedor fornecedor fornitore leverancier kreditor; \
    employee staff worker mitarbeiter angestellte beschaftigte arbeiter personal employe salarie personnel ouvrier \
    empleado trabajador plantilla funcionario empregado colaborador trabalhador dipendente impiegato lavoratore \
    medewerker werknemer personeel mitglied; \
    passenger traveller passagier fahrgast reisende voyageur passager pasajero viajero passageiro passeggero \
    viaggiatore reiziger; \
    surgery operation chirurgie operacion cirugia cirurgia operacao intervento chirurgia operatie ingreep eingriff \
    intervention tratamiento behandlung; \
    toy spielzeug jouet juguete brinquedo giocattolo speelgoed; \
    solar photovoltaic photovoltaik solaire solare zonnepaneel; \
    height grose korpergrose taille estatura altura altezza lengte hohe hauteur; \
    weight gewicht poids peso masse; \
    colour color farbe couleur cor colore kleur; \
    website url webseite homepage siteweb pagina sitio website; \
    birthday birth geburtstag geburtsdatum geboren naissance anniversaire nacimiento cumpleanos nascimento aniversario \
    nascita compleanno geboortedatum verjaardag; \
    pet animal haustier tier animal mascota bicho animale huisdier dier; \
    vehicle car truck lorry van fahrzeug auto wagen lkw pkw vehicule voiture camion vehiculo coche camion veiculo carro \
    caminhao veicolo macchina voertuig wagen vrachtwagen placa kennzeichen; \
    visitor guest tourist besucher gast gaste visiteur touriste hote visitante huesped turista hospede visitatore \
    ospite bezoeker; \
    crew besatzung mannschaft equipage tripulacion tripulacao equipaggio bemanning; \
    loan credit kredit darlehen pret emprunt credit prestamo credito emprestimo prestito lening; \
    subscription abonnement abo suscripcion abono assinatura abbonamento; \
    meal lunch dinner mahlzeit essen mittagessen repas cantine dejeuner comida almuerzo refeicao almoco pasto pranzo \
    maaltijd eten";

/// Words behind which the thing stands that is asked for.
const ASKS: &str = " viele wieviele viel wieviel welche welcher welches welchen welchem combien quel quelle quels quelles cuantos \
    cuantas que cual cuales quantos quantas qual quais quanti quante quale quali hoeveel welke welk ";
/// Those of them that are Spanish only with their accent.
const WITH_ACCENT: [&str; 1] = ["que"];
/// Words between these and the thing: articles, forms of to be, what counts and measures, and what any data may be.
const BETWEEN: &str = " der die das dem den des ein eine einer einen ist sind war waren verschiedene verschiedenen unserer \
    unsere neue neuen andere anderen le la les l un une de d du est sont etait etaient differents differentes autres \
    nouveaux nouvelles nos total totale el los las es son fue fueron del diferentes distintos distintas otros otras \
    nuevos nuevas nuestros nuestras o a os as e sao foi foram do da dos das outros outras novos novas nossos nossas il \
    lo i gli sono era erano diversi diverse altri altre nuovi nuove het een van is zijn was waren verschillende andere \
    nieuwe onze anzahl zahl summe nombre quantite montant prix cout numero cantidad importe precio costo coste quantidade \
    valor preco custo quantita importo prezzo aantal bedrag prijs kosten preis betrag name naam nom nome ";
/// Words with which nothing is asked for that could be missing, and those that tell rows apart: then nothing is judged.
const ENDS: &str = " plus moins mas menos mais mayor menor mejor peor maior melhor piu meno meest minst personen leute \
    menschen personnes gens personas gente pessoas persone mensen mal fois veces vezes volte keer tage wochen monate jahre \
    stunden minuten jours semaines mois annees ans heures minutes dias semanas meses anos horas minutos giorni settimane \
    mesi anni ore minuti dagen weken maanden jaren uren zeilen tabellen spalten lignes tables colonnes filas tablas \
    columnas linhas tabelas colunas righe tabelle colonne rijen kolommen moyenne durchschnitt promedio media gemiddelde \
    geld zeit prozent euro kilo kilogramm tonnen liter meter kilometer uhr heure hora ora tag monat jahr jour annee dia mes ano giorno mese anno dag maand jaar umsatz gewinn marge anteil quote chiffre recette \
    recettes benefice taux part pourcentage ingreso ingresos ventas beneficio ganancia porcentaje tasa receita faturamento lucro taxa percentual \
    fatturato ricavo utile omzet winst aandeel percentage art arten type types tipo \
    tipos sorte sortes soort soorten significa incluye contiene muestra sabemos tenemos tiene paso pasa ";
/// Words before something that is not all of it: the articles of things that are named first.
const SOME: &str = " un une du des una unos unas um uma uns umas uno een ";
/// Words for all that the data is of.
const WHOLES: &str = " sortiment angebot bestand system datenbank daten liste betrieb unternehmen firma stock catalogue base \
    systeme empresa catalogo sistema bedrijf systeem azienda ";
/// The shortest word that is taken for a thing.
const SHORTEST_THING: usize = 4;

/// Returns what a question that is not English asks for, where nothing is called so.
pub(super) fn foreign_gaps(question: &str, vocabulary: &Vocabulary) -> Vec<AskedGap> {
    let asked = asked_thing(&words_of(question)).filter(|thing| !is_named(thing, vocabulary));
    asked.map(|thing| gap_of(thing, GapKind::Counted)).into_iter().collect()
}

/// Returns a thing that a question has behind the one that it asks for, where nothing is called so: `welche Mieter haben
/// einen Hund`, `quels produits contiennent du gluten`. For a query that takes all rows of a table, and so leaves it out.
pub(super) fn unfiltered_thing(question: &str, vocabulary: &Vocabulary) -> Option<AskedGap> {
    let words = words_of(question);
    let asked = asked_thing(&words)?;
    let at = words.iter().position(|word| *word == asked)?;
    let is_german = words[..at].iter().any(|word| asks_in_german(word));
    let is_unnamed = |pair: &&[&str]| {
        let (before, plain) = (fold(pair[0]), fold(pair[1]));
        let begins_with_capital = pair[1].starts_with(char::is_uppercase);
        let is_thing = if is_german { begins_with_capital } else { is_in(SOME, &before) && !begins_with_capital };
        let says_nothing = is_in(ENDS, &plain) || is_in(BETWEEN, &plain) || is_in(WHOLES, &plain);
        is_thing && !says_nothing && plain.chars().count() >= SHORTEST_THING && !is_named(pair[1], vocabulary)
    };
    let found = words[at..].windows(2).find(is_unnamed)?;
    Some(gap_of(found[1], GapKind::Said))
}

fn words_of(question: &str) -> Vec<&str> {
    question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

fn gap_of(thing: &str, kind: GapKind) -> AskedGap {
    // Values have it in the singular.
    let words = vec![thing.to_lowercase(), without_ending(&fold(thing)).to_owned()];
    AskedGap { phrase: thing.to_owned(), words, kind }
}

fn is_in(list: &str, word: &str) -> bool {
    list.contains(&format!(" {word} "))
}

/// Whether a word asks in German, where things have a capital.
fn asks_in_german(word: &str) -> bool {
    let plain = fold(word);
    ["viele", "wieviele", "viel", "wieviel"].contains(&plain.as_str()) || plain.starts_with("welche")
}

/// Whether the data has nothing for a word by any word of the groups that it is in; not of a word that is in none.
pub(super) fn is_nowhere(word: &str, vocabulary: &Vocabulary) -> bool {
    let others = same_things(&fold(word));
    !others.is_empty() && !is_any_called(&others, vocabulary)
}

/// Returns the thing behind the first word that asks.
fn asked_thing<'w>(words: &[&'w str]) -> Option<&'w str> {
    let asks = |word: &&str| {
        let plain = fold(word);
        is_in(ASKS, &plain) && !(WITH_ACCENT.contains(&plain.as_str()) && word.is_ascii())
    };
    let at = words.iter().position(asks)?;
    let is_german = asks_in_german(words[at]);
    for word in words.get(at + 1..)? {
        let plain = fold(word);
        let is_name = word.starts_with(char::is_uppercase) && !is_german;
        if is_name || plain.starts_with(|c: char| c.is_ascii_digit()) || is_in(ENDS, &plain) || plain.ends_with("ste") {
            return None;
        }
        if is_in(BETWEEN, &plain) {
            continue;
        }
        // Things are written with a capital in German; what stands before them is not one.
        if is_german && !word.starts_with(char::is_uppercase) {
            let is_adjective = plain.ends_with("en") || plain.ends_with('e') || plain.ends_with("er");
            if is_adjective {
                continue;
            }
            return None;
        }
        return (plain.chars().count() >= SHORTEST_THING).then_some(*word);
    }
    None
}

/// Whether something of the data is called by a word, or by another word for the same thing.
fn is_named(word: &str, vocabulary: &Vocabulary) -> bool {
    let plain = fold(word);
    let mut things: Vec<&str> = same_things(&plain);
    things.push(&plain);
    vocabulary.names(&word.to_lowercase()) || is_any_called(&things, vocabulary)
}

/// Whether a name is a form of one of some words without accents, or ends with it: `einsatzfahrzeuge` of `fahrzeug`.
fn is_any_called(things: &[&str], vocabulary: &Vocabulary) -> bool {
    vocabulary.words_of(SHORTEST_THING - 1).any(|known| {
        let known = fold(known);
        let is_its_name =
            |plain: &&str| is_form(plain, &known) || is_compound(plain, &known) || is_compound(&known, plain);
        things.iter().any(is_its_name)
    })
}

/// Whether two words without accents have most letters in common, from the first on: the singular and the plural of one.
fn is_form(one: &str, other: &str) -> bool {
    let shared = one.chars().zip(other.chars()).take_while(|(left, right)| left == right).count();
    let longest = one.chars().count().max(other.chars().count());
    one == other || (shared >= SHORTEST_THING && 3 * shared >= 2 * longest)
}

/// Whether a word is a compound of another one: `einsatzfahrzeuge` of `fahrzeug`, and `kundenstamm` of `kunde`.
fn is_compound(whole: &str, part: &str) -> bool {
    let is_long_enough = |part: &str| part.chars().count() > SHORTEST_THING;
    if is_long_enough(part) && whole.starts_with(part) {
        return true;
    }
    let part = without_ending(part);
    is_long_enough(part) && whole.rfind(part).is_some_and(|at| at > 0 && whole.len() - at - part.len() <= 2)
}

/// Returns a word without the ending of its plural.
fn without_ending(plain: &str) -> &str {
    let shorter = ["en", "er", "es", "e", "n", "s"].iter().find_map(|ending| plain.strip_suffix(ending));
    shorter.filter(|shorter| shorter.len() >= SHORTEST_THING).unwrap_or(plain)
}

/// Returns the words of all groups that a word without accents is in.
fn same_things(plain: &str) -> Vec<&'static str> {
    let groups = CONCEPTS.split(';').map(|group| group.split_whitespace().collect::<Vec<_>>());
    groups.filter(|group| group.iter().any(|word| is_form_of_entry(plain, word))).flatten().collect()
}

/// Whether a word is one of a group, but for the ending of its plural.
fn is_form_of_entry(plain: &str, entry: &str) -> bool {
    const ENDINGS: [&str; 10] = ["", "s", "es", "e", "en", "n", "er", "ern", "nen", "x"];
    plain.strip_prefix(entry).is_some_and(|ending| ENDINGS.contains(&ending))
        || entry.strip_suffix(['o', 'a', 'e']).is_some_and(|stem| {
            stem.len() >= SHORTEST_THING
                && plain.strip_prefix(stem).is_some_and(|ending| ["i", "e", "os", "as"].contains(&ending))
        })
}

/// Returns a word in lower case without accents.
fn fold(word: &str) -> String {
    word.to_lowercase().chars().map(unaccented).map(|letter| if letter == 'ß' { 's' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(names: &str) -> Vocabulary {
        let mut vocabulary = Vocabulary::default();
        names.split_whitespace().for_each(|name| vocabulary.add_name(name));
        vocabulary
    }

    fn asked(question: &str, names: &str) -> Option<String> {
        foreign_gaps(question, &vocabulary(names)).pop().map(|gap| gap.phrase)
    }

    #[test]
    fn what_six_languages_ask_for_is_found_by_its_forms() {
        for (question, names) in [
            ("Wie viele Einsätze gab es im August?", "einsatz stichwort"),
            ("Welche Fahrzeuge sind am ältesten?", "einsatzfahrzeug baujahr"),
            ("Wie viele Mitarbeiter gibt es?", "angestellter personal_nr"),
            ("Combien d'enfants sont inscrits ?", "enfant prenom"),
            ("Quelles factures ne sont pas payées ?", "facture montant"),
            ("¿Cuántas consultas hubo en marzo?", "consulta fecha"),
            ("¿Qué mascota pesa más?", "mascota peso_kg"),
            ("Quantas viagens foram feitas em junho?", "viagem placa"),
            ("Hoeveel patiënten wonen in Zwolle?", "patient woonplaats"),
            ("Quanti clienti ci sono?", "acquirente data"),
            ("Wie viele Personen wohnen hier?", "einwohner ort"),
            ("Welche sind die größten?", "stadt einwohner"),
            ("Wie viel haben wir im Juli eingenommen?", "vorst preis verk"),
            ("Wie viel Geld haben wir eingenommen?", "vorst preis verk"),
            ("Wie viele Karten wurden verkauft?", "vorst preis verk"),
            ("Quel livre est le plus emprunté ?", "pret titre adherent"),
            ("Combien de lecteurs habitent à Nantes ?", "pret titre adherent"),
            ("Combien de fois est-il venu ?", "visite date"),
        ] {
            assert_eq!(asked(question, names), None, "{question}");
        }
    }

    #[test]
    fn what_nothing_is_called_is_missing() {
        for (question, names, missing) in [
            ("Wie viele Katzen wurden gerettet?", "einsatz stichwort fahrzeug", "Katzen"),
            ("Wie viel Popcorn wurde verkauft?", "film vorst preis verk", "Popcorn"),
            ("Welche Versicherung hat Jens Petersen?", "mitglied dienstgrad", "Versicherung"),
            ("Combien de jouets y a-t-il par groupe ?", "enfant groupe presence", "jouets"),
            ("¿Cuántas cirugías se hicieron este año?", "consulta mascota motivo", "cirugías"),
            ("Quantas multas recebeu João Prado?", "viagem motorista placa", "multas"),
            ("Qual foi o custo do seguro da Volvo?", "abastecimento valor veiculo", "seguro"),
            ("Hoeveel tandenborstels zijn er verkocht?", "behandeling afspraak patient", "tandenborstels"),
            ("Wat is het loon, en hoeveel fietsen zijn er?", "afspraak patient", "fietsen"),
        ] {
            assert_eq!(asked(question, names).as_deref(), Some(missing), "{question}");
        }
    }

    #[test]
    fn what_a_query_of_all_rows_leaves_out_is_a_thing() {
        let left_out =
            |question: &str, names: &str| unfiltered_thing(question, &vocabulary(names)).map(|gap| gap.phrase);
        for (question, names, missing) in [
            ("Welche Mieter haben einen Hund?", "mieter kaution strasse", Some("Hund")),
            ("Quels produits contiennent du gluten ?", "produit prix_vente", Some("gluten")),
            ("Welche Mieter haben eine Kaution?", "mieter kaution strasse", None),
            ("Welche Mieter haben wir?", "mieter kaution strasse", None),
            ("Wie viele Produkte sind im Sortiment?", "produkt preis", None),
            ("Quels produits vendons-nous ?", "produit prix_vente", None),
        ] {
            assert_eq!(left_out(question, names).as_deref(), missing, "{question}");
        }
        assert_eq!(asked("Welche Kunden sind in Graz?", "kundenstamm ort"), None);
    }

    #[test]
    fn words_of_another_language_are_found_by_what_they_mean() {
        let german = vocabulary("mitglied dienstgrad gehalt telefon fahrzeug");
        for (word, is_missing) in [
            ("salary", false),
            ("phone", false),
            ("insurance", true),
            ("vehicles", false),
            ("unicorns", false),
            ("rent", true),
        ] {
            assert_eq!(is_nowhere(word, &german), is_missing, "{word}");
        }
    }
}

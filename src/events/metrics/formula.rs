//! Formulas over named counts: numbers, names, + - * /, parentheses, min, max and round (to the nearest whole number).
//!
//! A formula is kept as the steps of a stack machine, so that neither evaluating nor dropping it recurses.

use std::fmt;
use std::ops::Range;

/// Longest text of a formula (bytes).
const LONGEST: usize = 1024;
/// Deepest nesting of parentheses, calls and signs.
const DEEPEST: u32 = 32;

/// A parsed formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: String,
    names: Vec<String>,
    steps: Vec<Step>,
}

/// A comparison of two formulas.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    left: Formula,
    order: Order,
    right: Formula,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Number(f64),
    /// Index into the names.
    Name(usize),
    Negate,
    Add,
    Subtract,
    Multiply,
    /// The divisor's place in the text, for the error of a division by 0.
    Divide(Range<usize>),
    Min,
    Max,
    Round,
}

/// Why a text is not a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where (bytes from the start).
    pub at: usize,
    /// What was wrong there.
    pub what: &'static str,
}

/// Why a formula has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// This divisor is 0.
    Zero(String),
    /// A step exceeds the range of f64.
    NotFinite,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the formula", self.what, self.at)
    }
}

impl std::error::Error for Malformed {}

impl Formula {
    /// Parses `text`.
    ///
    /// # Errors
    /// If `text` is not a formula, or exceeds the limits of length and nesting.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut parser = Parser { text, at: 0, depth: 0, names: Vec::new(), steps: Vec::new() };
        if text.len() > LONGEST {
            return Err(parser.malformed("too long"));
        }
        parser.sum()?;
        match parser.peek() {
            None => Ok(Self { text: text.to_owned(), names: parser.names, steps: parser.steps }),
            Some(_) => Err(parser.malformed("an operator was expected")),
        }
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Each name once, in the order of first occurrence.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The value of the formula for these values of its names, in the order of [`Formula::names`].
    ///
    /// # Errors
    /// If a divisor is 0, a step is not finite, or a name has no value.
    pub fn value(&self, values: &[f64]) -> Result<f64, NoValue> {
        let mut stack: Vec<f64> = Vec::new();
        for step in &self.steps {
            let right = match step {
                Step::Number(number) => Some(*number),
                Step::Name(name) => values.get(*name).copied(),
                _ => stack.pop(),
            };
            let right = right.ok_or(NoValue::NotFinite)?;
            let mut with_left = |apply: fn(f64, f64) -> f64| {
                stack.pop().map(|left| apply(left, right)).ok_or(NoValue::NotFinite)
            };
            let value = match step {
                Step::Number(_) | Step::Name(_) => right,
                Step::Negate => -right,
                Step::Round => right.round(),
                Step::Add => with_left(|a, b| a + b)?,
                Step::Subtract => with_left(|a, b| a - b)?,
                Step::Multiply => with_left(|a, b| a * b)?,
                Step::Min => with_left(f64::min)?,
                Step::Max => with_left(f64::max)?,
                Step::Divide(divisor) if right == 0.0 => {
                    return Err(NoValue::Zero(self.text.get(divisor.clone()).unwrap_or_default().to_owned()));
                }
                Step::Divide(_) => with_left(|a, b| a / b)?,
            };
            if !value.is_finite() {
                return Err(NoValue::NotFinite);
            }
            stack.push(value);
        }
        stack.pop().ok_or(NoValue::NotFinite)
    }

    /// How often the formula multiplies by values of each of `N` kinds, less how often it divides by them: `of` says this
    /// of each name. `None` if terms of a sum differ in this.
    pub fn degrees<const N: usize>(&self, of: impl Fn(&str) -> Option<[i32; N]>) -> Option<[i32; N]> {
        let mut stack: Vec<[i32; N]> = Vec::new();
        for step in &self.steps {
            let right = match step {
                Step::Number(_) => [0; N],
                Step::Name(name) => of(self.names.get(*name)?)?,
                _ => stack.pop()?,
            };
            let degrees = match step {
                Step::Number(_) | Step::Name(_) | Step::Negate => right,
                // A rounded count is no multiple of the count.
                Step::Round if right != [0; N] => return None,
                Step::Round => right,
                Step::Add | Step::Subtract | Step::Min | Step::Max => {
                    stack.pop().filter(|left| *left == right)?
                }
                Step::Multiply => sum(stack.pop()?, right, 1),
                Step::Divide(_) => sum(stack.pop()?, right, -1),
            };
            stack.push(degrees);
        }
        stack.pop()
    }
}

fn sum<const N: usize>(mut left: [i32; N], right: [i32; N], sign: i32) -> [i32; N] {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += sign * right);
    left
}

impl Condition {
    /// Parses two formulas with <, <=, > or >= in between.
    ///
    /// # Errors
    /// Those of [`Formula::parse`], and a missing comparison.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let missing = Malformed { at: 0, what: "one of <, <=, > and >= was expected" };
        let at = text.find(['<', '>']).ok_or(missing)?;
        let (left, rest) = text.split_at(at);
        let orders = [("<=", Order::AtMost), (">=", Order::AtLeast), ("<", Order::Less), (">", Order::More)];
        let found = orders.iter().find_map(|(sign, order)| Some((*order, rest.strip_prefix(sign)?)));
        let (order, right) = found.ok_or(Malformed { at, what: "one of <, <=, > and >= was expected" })?;
        let right = Formula::parse(right)
            .map_err(|malformed| Malformed { at: malformed.at + text.len() - right.len(), ..malformed })?;
        Ok(Self { text: text.to_owned(), left: Formula::parse(left)?, order, right })
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The two compared formulas.
    pub fn sides(&self) -> [&Formula; 2] {
        [&self.left, &self.right]
    }

    /// Whether the condition holds for these values of its sides.
    pub fn holds(&self, [left, right]: [f64; 2]) -> bool {
        match self.order {
            Order::Less => left < right,
            Order::AtMost => left <= right,
            Order::More => left > right,
            Order::AtLeast => left >= right,
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    names: Vec<String>,
    steps: Vec<Step>,
}

impl<'a> Parser<'a> {
    fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { at: self.at, what }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_ascii_start().len();
        self.rest().bytes().next()
    }

    fn takes(&mut self, sign: u8) -> bool {
        let found = self.peek() == Some(sign);
        self.at += usize::from(found);
        found
    }

    fn expects(&mut self, sign: u8, what: &'static str) -> Result<(), Malformed> {
        if self.takes(sign) { Ok(()) } else { Err(self.malformed(what)) }
    }

    fn sum(&mut self) -> Result<(), Malformed> {
        self.product()?;
        loop {
            let step = match self.peek() {
                Some(b'+') => Step::Add,
                Some(b'-') => Step::Subtract,
                _ => return Ok(()),
            };
            self.at += 1;
            self.product()?;
            self.steps.push(step);
        }
    }

    fn product(&mut self) -> Result<(), Malformed> {
        self.factor()?;
        loop {
            let divides = match self.peek() {
                Some(b'*') => false,
                Some(b'/') => true,
                _ => return Ok(()),
            };
            self.at += 1;
            self.peek();
            let start = self.at;
            self.factor()?;
            self.steps.push(if divides { Step::Divide(start..self.at) } else { Step::Multiply });
        }
    }

    fn factor(&mut self) -> Result<(), Malformed> {
        if self.depth == DEEPEST {
            return Err(self.malformed("nested too deep"));
        }
        self.depth += 1;
        match self.peek() {
            Some(b'(') => {
                self.at += 1;
                self.sum()?;
                self.expects(b')', "a closing parenthesis was expected")?;
            }
            Some(b'-') => {
                self.at += 1;
                self.factor()?;
                self.steps.push(Step::Negate);
            }
            Some(b'0'..=b'9' | b'.') => self.number()?,
            Some(b'a'..=b'z' | b'_') => self.name()?,
            _ => return Err(self.malformed("a number, a name or a parenthesis was expected")),
        }
        self.depth -= 1;
        Ok(())
    }

    fn number(&mut self) -> Result<(), Malformed> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let is_exponent = |at: usize| at > 0 && matches!(bytes[at - 1], b'e' | b'E');
        let ends = |at: &usize| match bytes[*at] {
            b'0'..=b'9' | b'.' | b'e' | b'E' => false,
            b'+' | b'-' => !is_exponent(*at),
            _ => true,
        };
        let length = (0..bytes.len()).find(ends).unwrap_or(bytes.len());
        let number = rest.get(..length).and_then(|text| text.parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite()).ok_or(self.malformed("no number"))?;
        self.at += length;
        self.steps.push(Step::Number(number));
        Ok(())
    }

    fn name(&mut self) -> Result<(), Malformed> {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let rest = self.rest();
        let name = rest.find(|c| !is_part(c)).and_then(|end| rest.get(..end)).unwrap_or(rest);
        self.at += name.len();
        if !self.takes(b'(') {
            let known = self.names.iter().position(|known| known == name);
            let index = known.unwrap_or_else(|| {
                self.names.push(name.to_owned());
                self.names.len() - 1
            });
            self.steps.push(Step::Name(index));
            return Ok(());
        }
        let step = match name {
            "round" => {
                self.sum()?;
                self.expects(b')', "a closing parenthesis was expected")?;
                self.steps.push(Step::Round);
                return Ok(());
            }
            "min" => Step::Min,
            "max" => Step::Max,
            _ => return Err(self.malformed("an unknown function (known: min, max, round)")),
        };
        self.sum()?;
        self.expects(b',', "a comma and a second value were expected")?;
        loop {
            self.sum()?;
            self.steps.push(step.clone());
            if !self.takes(b',') {
                return self.expects(b')', "a closing parenthesis was expected");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn degrees_are_those_of_a_product() {
        let of = |text: &str| {
            let kind =
                |name: &str| Some([i32::from(name.starts_with('a')), i32::from(name.starts_with('b'))]);
            Formula::parse(text).unwrap().degrees(kind)
        };
        assert_eq!(of("(a1 + a2) * a3 / b / x"), Some([2, -1]));
        assert_eq!(of("b * a1 / a2 * 3"), Some([0, 1]));
        assert_eq!(of("max(a1, a2) / -a3"), Some([0, 0]));
        assert_eq!((of("a + 1"), of("min(a, b)")), (None, None));
        assert_eq!((of("a1 * round(x / 2)"), of("round(a)")), (Some([1, 0]), None));
    }

    fn value(text: &str, values: &[f64]) -> Result<f64, NoValue> {
        Formula::parse(text).unwrap().value(values)
    }

    #[test]
    fn formulas_have_the_values_of_school_arithmetic() {
        assert_eq!(value("1 + 2 * 3", &[]), Ok(7.0));
        assert_eq!(value("(1 + 2) * 3", &[]), Ok(9.0));
        assert_eq!(value("10 - 4 - 3", &[]), Ok(3.0));
        assert_eq!(value("24 / 4 / 3", &[]), Ok(2.0));
        assert_eq!(value("-2 * -(3 - 5)", &[]), Ok(-4.0));
        assert_eq!(value("2.5e-1 * 4E+1", &[]), Ok(10.0));
        assert_eq!(value("max(0, a - b, min(1, b))", &[5.0, 3.0]), Ok(2.0));
        assert_eq!(value("a+a*b", &[2.0, 3.0]), Ok(8.0));
        assert_eq!(value("2 * round(a / 100) + 1", &[2694.6]), Ok(55.0));
        assert_eq!(value("round(-a)", &[2.6]), Ok(-3.0));
        let formula = Formula::parse("b / (a + b)").unwrap();
        assert_eq!(formula.names(), ["b", "a"]);
    }

    #[test]
    fn a_divisor_of_nothing_is_named() {
        assert_eq!(value("1 / a", &[0.0]), Err(NoValue::Zero("a".into())));
        assert_eq!(value("1 / ( a - b ) * 2", &[1.0, 1.0]), Err(NoValue::Zero("( a - b )".into())));
        assert_eq!(value("a * a", &[1e300]), Err(NoValue::NotFinite));
        assert_eq!(value("1 / (a * a)", &[1e300]), Err(NoValue::NotFinite));
        assert_eq!(value("a", &[f64::NAN]), Err(NoValue::NotFinite));
        assert_eq!(value("a", &[]), Err(NoValue::NotFinite));
    }

    #[test]
    fn what_is_no_formula_says_where() {
        for (text, at) in [
            ("", 0),
            ("1 +", 3),
            ("(1", 2),
            ("1 2", 2),
            ("sqrt(2)", 5),
            ("min(1)", 5),
            ("round(1, 2)", 7),
            ("a $ b", 2),
            ("1e999", 0),
            ("A", 0),
            ("é", 0),
        ] {
            assert_eq!(Formula::parse(text).unwrap_err().at, at, "{text}");
        }
        let nested = |depth| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(Formula::parse(&nested(20)).is_ok());
        assert_eq!(Formula::parse(&nested(40)).unwrap_err().what, "nested too deep");
        assert!(Formula::parse(&"-".repeat(1000)).is_err());
        assert!(Formula::parse(&"1+".repeat(100_000)).is_err());
        assert!(Condition::parse("a = b").is_err());
        assert_eq!(Condition::parse("a <= ").unwrap_err().at, 5);
    }

    #[test]
    fn conditions_compare() {
        let holds = |text: &str, sides| Condition::parse(text).unwrap().holds(sides);
        assert!(holds("a <= b", [1.0, 1.0]) && !holds("a < b", [1.0, 1.0]));
        assert!(holds("a >= b", [1.0, 1.0]) && !holds("a > b", [1.0, 1.0]));
        assert!(holds("a < b", [0.0, 1.0]) && holds("a > b", [1.0, 0.0]));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = Formula::parse(&text);
            let _ = Condition::parse(&text);
        }

        #[test]
        fn no_text_of_its_own_signs_makes_it_panic(text in "[-+*/()<>=,.0-9a-ce min]{0,60}", values in
            prop::collection::vec(any::<f64>(), 0..4)) {
            let _ = Condition::parse(&text);
            if let Ok(formula) = Formula::parse(&text)
                && let Ok(value) = formula.value(&values) {
                prop_assert!(value.is_finite());
            }
        }

        #[test]
        fn sums_and_products_are_those_of_f64(a in -1e9f64..1e9, b in -1e9f64..1e9, c in 1e-3f64..1e9) {
            prop_assert_eq!(value("(a + b) * a - b / c", &[a, b, c]), Ok((a + b) * a - b / c));
        }
    }
}

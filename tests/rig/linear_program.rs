//! A linear program solver, small and slow: the two-phase simplex method on a dense tableau with Bland's rule (V.
//! Chvatal, "Linear Programming", 1983). It has nothing in common with the proof of the bounds.

/// The solution of a linear program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solution {
    Optimum(f64),
    Infeasible,
    Unbounded,
}

/// Values closer to zero than this are rounding errors: the programs have integers below 2^40.
const TINY: f64 = 1e-6;

/// The largest `objective . x` over x >= 0 with `row . x <= limit` for every row.
pub fn maximise(objective: &[f64], rows: &[(Vec<f64>, f64)]) -> Solution {
    let mut tableau = Tableau::new(objective.len(), rows);
    if rows.iter().any(|(_, limit)| *limit < 0.0) && !tableau.find_feasible() {
        return Solution::Infeasible;
    }
    tableau.set_objective(objective);
    if tableau.optimise() { Solution::Optimum(tableau.value) } else { Solution::Unbounded }
}

/// basic = limit - sum over nonbasic of coefficient * variable, for each row.
struct Tableau {
    /// Variables by number: those of the program, then one slack per row, then the auxiliary variable.
    basic: Vec<usize>,
    nonbasic: Vec<usize>,
    rows: Vec<Vec<f64>>,
    limits: Vec<f64>,
    objective: Vec<f64>,
    value: f64,
    auxiliary: usize,
}

impl Tableau {
    fn new(variables: usize, constraints: &[(Vec<f64>, f64)]) -> Self {
        let auxiliary = variables + constraints.len();
        // The last column is that of the auxiliary variable, which relaxes every row.
        let row = |(row, _): &(Vec<f64>, f64)| row.iter().copied().chain([-1.0]).collect();
        Self {
            basic: (variables..auxiliary).collect(),
            nonbasic: (0..variables).chain([auxiliary]).collect(),
            rows: constraints.iter().map(row).collect(),
            limits: constraints.iter().map(|(_, limit)| *limit).collect(),
            objective: vec![0.0; variables + 1],
            value: 0.0,
            auxiliary,
        }
    }

    /// Phase one: minimizes the auxiliary variable; true if the minimum is zero.
    fn find_feasible(&mut self) -> bool {
        let column = self.nonbasic.len() - 1;
        self.objective[column] = -1.0;
        let worst = (0..self.limits.len()).min_by(|a, b| self.limits[*a].total_cmp(&self.limits[*b]));
        self.pivot(worst.expect("a row"), column);
        self.optimise();
        if self.value < -TINY {
            return false;
        }
        // It is still basic, at zero, so any nonbasic variable may replace it.
        let row = self.basic.iter().position(|v| *v == self.auxiliary);
        let other = |row: usize| (0..self.nonbasic.len()).find(|c| self.rows[row][*c].abs() > TINY);
        if let Some((row, column)) = row.and_then(|row| Some((row, other(row)?))) {
            self.pivot(row, column);
        }
        true
    }

    fn set_objective(&mut self, objective: &[f64]) {
        if let Some(column) = self.nonbasic.iter().position(|v| *v == self.auxiliary) {
            self.nonbasic.remove(column);
            for row in &mut self.rows {
                row.remove(column);
            }
        }
        self.value = 0.0;
        self.objective = vec![0.0; self.nonbasic.len()];
        for (variable, weight) in objective.iter().enumerate() {
            if let Some(column) = self.nonbasic.iter().position(|v| *v == variable) {
                self.objective[column] += weight;
            } else if let Some(row) = self.basic.iter().position(|v| *v == variable) {
                self.value += weight * self.limits[row];
                for column in 0..self.nonbasic.len() {
                    self.objective[column] -= weight * self.rows[row][column];
                }
            }
        }
    }

    /// False if the objective has no limit.
    fn optimise(&mut self) -> bool {
        loop {
            // Bland's rule: the variable with the smallest number enters, and in a tie leaves. So the method never
            // cycles.
            let gains = (0..self.nonbasic.len()).filter(|c| self.objective[*c] > TINY);
            let Some(column) = gains.min_by_key(|c| self.nonbasic[*c]) else { return true };
            let limiting = (0..self.rows.len()).filter(|r| self.rows[*r][column] > TINY);
            let Some(row) = limiting.min_by(|a, b| {
                let room = |r: usize| self.limits[r] / self.rows[r][column];
                room(*a).total_cmp(&room(*b)).then(self.basic[*a].cmp(&self.basic[*b]))
            }) else {
                return false;
            };
            self.pivot(row, column);
        }
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let by = self.rows[row][column];
        self.rows[row].iter_mut().for_each(|x| *x /= by);
        self.rows[row][column] = 1.0 / by;
        self.limits[row] /= by;
        let (pivot, limit) = (self.rows[row].clone(), self.limits[row]);
        for other in (0..self.rows.len()).filter(|r| *r != row) {
            let factor = self.rows[other][column];
            self.rows[other][column] = 0.0;
            self.rows[other].iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            self.limits[other] -= factor * limit;
        }
        let factor = self.objective[column];
        self.objective[column] = 0.0;
        self.objective.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        self.value += factor * limit;
        std::mem::swap(&mut self.basic[row], &mut self.nonbasic[column]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_programs_have_their_known_optima() {
        // Chvatal, chapter 2: 13 at (2, 0, 1).
        let rows = [(vec![2., 3., 1.], 5.), (vec![4., 1., 2.], 11.), (vec![3., 4., 2.], 8.)];
        assert_eq!(maximise(&[5., 4., 3.], &rows), Solution::Optimum(13.0));
        // x + y >= 2, x <= 1, y <= 1: phase one must find a first solution.
        let rows = [(vec![-1., -1.], -2.), (vec![1., 0.], 1.), (vec![0., 1.], 1.)];
        assert_eq!(maximise(&[-1., -3.], &rows), Solution::Optimum(-4.0));
    }

    #[test]
    fn what_has_no_optimum_says_so() {
        assert_eq!(maximise(&[1.], &[(vec![1.], -1.)]), Solution::Infeasible);
        assert_eq!(maximise(&[1.], &[(vec![-1.], -1.)]), Solution::Unbounded);
    }
}

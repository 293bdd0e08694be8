//! stats
pub mod bh;
pub mod bimodal;
pub mod binomial;
pub mod class;
pub mod drift;
pub mod median;
pub mod noise;
pub mod normal;
pub mod qn;
pub mod random;
pub mod runs;
pub mod verdict;
pub mod within;

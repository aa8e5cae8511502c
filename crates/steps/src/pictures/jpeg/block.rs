//! A block of a component: 64 numbers, their order in a file and their factors.

/// Numbers of a block.
pub const BLOCK: usize = SIDE * SIDE;

/// Numbers on a side of a block.
pub const SIDE: usize = 8;

/// A block of frequencies.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub struct Block {
    /// Row by row.
    pub numbers: [i16; BLOCK],
    /// Only the first is not zero.
    pub flat: bool,
}

impl Block {
    /// Zeros.
    pub const EMPTY: Block = Block { numbers: [0; BLOCK], flat: true };
}

/// Where a number of a file stands in its block, and what it is multiplied by.
#[derive(Clone, Copy)]
pub struct Cell {
    /// What it is multiplied by.
    pub factor: i16,
    /// Where it stands, row by row.
    pub place: u8,
}

/// The cells of all numbers, in the order of the file; those beyond a block are as the last one.
pub type Cells = [Cell; 256];

/// Cells with these factors, which are in the order of the file.
pub fn cells(factors: &[u8; BLOCK]) -> Cells {
    std::array::from_fn(|place| Cell {
        factor: factors[place.min(BLOCK - 1)].into(),
        place: ORDER[place.min(BLOCK - 1)],
    })
}

/// Where in a block a number stands, by its place in the file: along diagonals, there and back.
const ORDER: [u8; BLOCK] = {
    let mut order = [0; BLOCK];
    let (mut place, mut diagonal) = (0, 0);
    while diagonal < 2 * SIDE - 1 {
        let mut step = 0;
        while step <= diagonal {
            let (row, column) = if diagonal % 2 == 0 { (diagonal - step, step) } else { (step, diagonal - step) };
            if row < SIDE && column < SIDE {
                order[place] = (row * SIDE + column) as u8;
                place += 1;
            }
            step += 1;
        }
        diagonal += 1;
    }
    order
};

//! tt-metal's description of tensors, which has half a kilobyte for each, in a few words.

/// `[32, 64] bfloat16 dram` for each tensor, or the text as it is where that cannot be found in it.
pub fn short(text: &str) -> String {
    let tensors: Option<Vec<String>> = text.split("TensorSpec(").skip(1).map(tensor).collect();
    tensors.filter(|tensors| !tensors.is_empty()).map_or_else(|| text.to_owned(), |tensors| tensors.join(", "))
}

fn tensor(text: &str) -> Option<String> {
    let shape = text.split_once("logical_shape=Shape(")?.1.split_once(')')?.0;
    let word = |key: &str| {
        let rest = text.split_once(key)?.1;
        // A word at the very end may be cut off.
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        Some(rest[..end].to_ascii_lowercase())
    };
    // Most tensors are interleaved.
    let layout = word("memory_layout=TensorMemoryLayout::").filter(|layout| layout != "interleaved");
    let words = [word("dtype=DataType::"), word("buffer_type=BufferType::"), layout];
    Some(words.into_iter().flatten().fold(shape.to_owned(), |text, word| text + " " + &word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ttnn 0.81.1 prints it.
    const REAL: &str = "[0]: TensorSpec(logical_shape=Shape([32, 64]),tensor_layout=TensorLayout(dtype=DataType::BFLOAT16,\
        page_config=PageConfig(config=TilePageConfig(tile=Tile(tile_shape={32, 32},face_shape={16, 16},num_faces=4))),\
        memory_config=MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::DRAM,\
        shard_spec=std::nullopt,nd_shard_spec=std::nullopt,created_with_nd_shard_spec=0,per_core_allocation=0,\
        range_lockstep_allocation=0),alignment=Alignment([32, 32])))";

    #[test]
    fn a_tensor_is_its_shape_type_and_place() {
        assert_eq!(short(REAL), "[32, 64] bfloat16 dram");
        let sharded = REAL.replace("INTERLEAVED", "HEIGHT_SHARDED").replace("DRAM", "L1").replace("[0]", "[1]");
        assert_eq!(short(&format!("{REAL}, {sharded}")), "[32, 64] bfloat16 dram, [32, 64] bfloat16 l1 height_sharded");
    }

    #[test]
    fn what_is_not_understood_is_shown_as_it_is() {
        for text in ["", "of tomorrow", "TensorSpec(shape=[1])", "TensorSpec(logical_shape=Shape([1"] {
            assert_eq!(short(text), text);
        }
        let cut = &REAL[..REAL.find("OAT16").unwrap()];
        assert_eq!(short(cut), "[32, 64]", "what was cut off is left out");
    }
}

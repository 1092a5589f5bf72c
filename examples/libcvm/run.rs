// Runs a plan of one input and one output: run P.plan sample.bin >answer.bin
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::io::Write;

// What cvm.h declares, as far as it is used here.
#[repr(C)]
struct Port {
    name: *const c_char,
    dtype: i32,
    rank: i32,
    shape: [i64; 6],
    bytes: i64,
    lo: i32,
    hi: i32,
}

#[repr(C)]
struct Error {
    text: [c_char; 512],
}

#[link(name = "cvm")]
extern "C" {
    fn cvm_open(path: *const c_char, max_memory: i64, error: *mut Error) -> *mut c_void;
    fn cvm_free(plan: *mut c_void);
    fn cvm_input(plan: *const c_void, number: usize) -> *const Port;
    fn cvm_output(plan: *const c_void, number: usize) -> *const Port;
    fn cvm_run(
        plan: *const c_void,
        inputs: *const *const c_void,
        outputs: *const *mut c_void,
        threads: c_int,
        error: *mut Error,
    ) -> c_int;
}

struct Plan(*mut c_void);

impl Plan {
    fn open(path: &str) -> Result<Plan, String> {
        let path = CString::new(path).map_err(|problem| problem.to_string())?;
        let mut error = Error { text: [0; 512] };
        let plan = unsafe { cvm_open(path.as_ptr(), 0, &mut error) };
        if plan.is_null() { Err(sentence(&error)) } else { Ok(Plan(plan)) }
    }

    fn run(&self, sample: &[u8]) -> Result<Vec<u8>, String> {
        let (input, output) = unsafe { (&*cvm_input(self.0, 0), &*cvm_output(self.0, 0)) };
        if sample.len() != input.bytes as usize {
            return Err(format!("the sample has {} bytes, not {}", sample.len(), input.bytes));
        }
        // In 64-bit words, which are aligned for every dtype.
        let mut from = vec![0u64; sample.len() / 8 + 1];
        let mut to = vec![0u64; output.bytes as usize / 8 + 1];
        let mut error = Error { text: [0; 512] };
        let refused = unsafe {
            std::ptr::copy_nonoverlapping(sample.as_ptr(), from.as_mut_ptr().cast(), sample.len());
            let inputs = [from.as_ptr().cast::<c_void>()];
            let outputs = [to.as_mut_ptr().cast::<c_void>()];
            cvm_run(self.0, inputs.as_ptr(), outputs.as_ptr(), 1, &mut error)
        };
        let bytes = to.iter().flat_map(|word| word.to_ne_bytes());
        if refused != 0 { Err(sentence(&error)) } else { Ok(bytes.take(output.bytes as usize).collect()) }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        unsafe { cvm_free(self.0) }
    }
}

fn sentence(error: &Error) -> String {
    unsafe { CStr::from_ptr(error.text.as_ptr()) }.to_string_lossy().into_owned()
}

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().collect();
    let [_, plan, sample] = &words[..] else { return Err("run P.plan sample.bin >answer.bin".into()) };
    let sample = std::fs::read(sample).map_err(|problem| format!("{sample}: {problem}"))?;
    let answer = Plan::open(plan)?.run(&sample)?;
    std::io::stdout().write_all(&answer).map_err(|problem| problem.to_string())
}

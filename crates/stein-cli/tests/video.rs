//! `stein video`: films of a small run, and what is refused. Where nothing can be drawn, tests that draw say so and pass.
#![cfg(feature = "mujoco")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{assert_refused, run, stein, succeed, train};

/// A run of two hoppers that go on after a fall, or end there.
fn hoppers(place: &Path, end: bool) -> PathBuf {
    let out = place.join("hoppers");
    let mut command = stein(&["train", "hopper", "--ensemble=2", "--steps=128", "--iterations=2"]);
    command.args(["--set=ppo.minibatches=4", "--set=env.horizon=150"]);
    command.arg(format!("--set=env.terminate_when_unhealthy={end}"));
    command.arg("--out").arg(&out);
    succeed(command);
    out
}

fn video(run: &Path, extra: &[&str]) -> Command {
    let mut command = stein(&["video", run.to_str().unwrap(), "--size=64x48"]);
    command.args(extra);
    command
}

/// Makes a film; false, with the reason printed, where this machine has no EGL.
fn filmed(command: Command) -> bool {
    let finished = run(command);
    if finished.code == Some(1) && finished.stderr.contains("libegl1") {
        println!("skipped: {}", finished.stderr);
        return false;
    }
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    true
}

/// The pictures of an animated PNG and its width and height.
fn pictures(path: &Path) -> (Vec<Vec<u8>>, [u32; 2]) {
    let mut reader = png::Decoder::new(fs::File::open(path).unwrap()).read_info().unwrap();
    let info = reader.info();
    let (size, count) = (
        [info.width, info.height],
        info.animation_control.map_or(1, |control| control.num_frames),
    );
    let mut picture = vec![0; reader.output_buffer_size()];
    let pictures = (0..count).map(|_| {
        reader.next_frame(&mut picture).unwrap();
        picture.clone()
    });
    (pictures.collect(), size)
}

/// Height of a line of text for pictures as small as these.
const LINE: usize = 12;

#[test]
fn a_film_shows_all_policies_moving_under_their_names() {
    let place = tempfile::tempdir().unwrap();
    let run = hoppers(place.path(), false);
    let out = place.path().join("deep/film.png");
    if !filmed(video(&run, &["--seconds=1", "--out", out.to_str().unwrap()])) {
        return;
    }
    let (frames, size) = pictures(&out);
    assert_eq!((frames.len(), size), (25, [2 * 64 + 4, 48 + LINE as u32]));
    let row = 3 * size[0] as usize;
    let (captions, bodies): (Vec<_>, Vec<_>) = frames.iter().map(|frame| frame.split_at(row * LINE)).unzip();
    // Both policies have a caption, the same in every picture, and move; each in its own way.
    let half = |picture: &[u8], right: usize| -> Vec<u8> {
        let rows = picture.chunks_exact(row);
        rows.flat_map(|row| row[3 * 68 * right..][..3 * 64].to_vec()).collect()
    };
    for policy in [0, 1] {
        let caption = half(captions[0], policy);
        let ink = caption
            .chunks_exact(3)
            .filter(|pixel| pixel.iter().any(|&value| value < 160));
        assert!(ink.count() > 30, "policy {policy} has no caption");
        assert!(captions.iter().all(|other| half(other, policy) == caption));
        assert_ne!(half(bodies[0], policy), half(bodies[12], policy));
    }
    assert_ne!(half(captions[0], 0), half(captions[0], 1));
    assert_ne!(half(bodies[24], 0), half(bodies[24], 1));
    // The film strip: six moments in two rows.
    let (strip, size) = pictures(&place.path().join("deep/film_strip.png"));
    assert_eq!((strip.len(), size), (1, [6 * 68 - 4, 12 + 2 * 64]));

    // The same again is the same to the byte; another seed begins elsewhere.
    let film = |extra: &[&str]| {
        let again = place.path().join("again.png");
        let mut command = video(&run, &["--seconds=0.2", "--out", again.to_str().unwrap()]);
        command.args(extra);
        succeed(command);
        fs::read(again).unwrap()
    };
    assert_eq!(film(&[]), film(&[]));
    assert_ne!(film(&[]), film(&["--seed=7"]));
}

#[test]
fn one_policy_and_early_ends_are_filmed_as_gif() {
    let place = tempfile::tempdir().unwrap();
    let run = hoppers(place.path(), true);
    if !filmed(video(&run, &["--policy=1", "--fps=10", "--seconds=5"])) {
        return;
    }
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let file = fs::File::open(run.join("figures/video_policy_1.gif")).unwrap();
    let mut decoder = options.read_info(file).unwrap();
    assert_eq!((decoder.width(), decoder.height()), (64, 48 + LINE as u16));
    let mut frames = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        assert_eq!(frame.delay, 10);
        frames.push(frame.buffer.to_vec());
    }
    // A beginner falls within a second; the film goes on for one more, but not for five.
    assert!((10..=22).contains(&frames.len()), "{} pictures", frames.len());
    let white = |frame: &[u8]| {
        let pixels = frame.chunks_exact(4).skip(64 * (LINE + 37));
        pixels.filter(|pixel| *pixel == [255; 4]).count()
    };
    assert!(white(&frames[0]) < 20, "an ending at the beginning");
    let last = frames.iter().map(|frame| white(frame)).max().unwrap();
    assert!(last > 150, "no ending is written: {last}");
    assert!(run.join("figures/video_policy_1_strip.png").exists());

    // Capitals are as good.
    let loud = run.join("FILM.GIF");
    let mut command = stein(&["video", run.to_str().unwrap(), "--size=64X48", "--seconds=0.2", "--out"]);
    command.arg(&loud);
    succeed(command);
    assert_eq!(fs::read(&loud).unwrap()[..4], *b"GIF8");
}

#[test]
fn without_egl_the_packages_are_named() {
    let place = tempfile::tempdir().unwrap();
    let run_folder = hoppers(place.path(), true);
    let mut command = video(&run_folder, &[]);
    // No driver is found below a folder that is not there.
    command.env("__EGL_VENDOR_LIBRARY_DIRS", place.path().join("gone"));
    assert_refused(&run(command), 1, &["cannot be drawn", "libegl1", "libgl1-mesa-dri"]);
    assert!(!run_folder.join("figures").exists());
}

#[test]
fn wrong_arguments_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let hoppers = hoppers(place.path(), true);
    let cases: [(&[&str], &[&str]); 12] = [
        (&["--policy=2"], &["--policy 2", "0 to 1"]),
        (&["--seconds=0"], &["--seconds 0", "0.01 to 600"]),
        (&["--seconds=-1"], &["--seconds -1"]),
        (&["--seconds=nan"], &["--seconds NaN"]),
        (&["--seconds=601"], &["--seconds 601"]),
        (&["--fps=0"], &["--fps 0", "1 to 50"]),
        (&["--fps=51"], &["--fps 51"]),
        (&["--out=film.mp4"], &["film.mp4", ".gif", ".png"]),
        (&["--out=film"], &["film", ".gif"]),
        (&["--size=240"], &["--size 240", "240x180"]),
        (&["--size=240xx180"], &["--size 240xx180", "240x180"]),
        (&["--size=8x99999"], &["--size 8x99999", "32 to 4096"]),
    ];
    for (extra, words) in cases {
        let mut command = stein(&["video", hoppers.to_str().unwrap()]);
        command.args(extra);
        assert_refused(&run(command), 2, words);
    }
    let gone = place.path().join("gone");
    assert_refused(&run(video(&gone, &[])), 2, &["gone"]);
    let maze = place.path().join("maze");
    succeed(train(&maze, &["--set=iterations=2"]));
    assert_refused(&run(video(&maze, &[])), 2, &["maze cannot be filmed", "stein plot"]);
}

//! Videos of a world of a single colour, with known episodes and frames.

use super::*;

/// Draws the pose as a shade of red over blue; a step takes a tenth of a second.
struct Shade {
    drawings: std::rc::Rc<std::cell::Cell<usize>>,
}

impl Stage for Shade {
    fn step_time(&self) -> f64 {
        0.1
    }

    fn draw(&mut self, pose: &[f64], pixels: &mut [u8]) -> Result<()> {
        self.drawings.set(self.drawings.get() + 1);
        for pixel in pixels.chunks_exact_mut(3) {
            pixel.copy_from_slice(&[pose[0] as u8, 0, 200]);
        }
        Ok(())
    }
}

const SMALL: FilmConfig = FilmConfig {
    seconds: 1.0,
    rate: 20,
    width: 64,
    height: 48,
};

/// An episode of this many steps whose pose is ten times the state's index.
fn take(policy: usize, steps: usize) -> Take {
    Take {
        policy,
        total: 1234.5,
        outcome: None,
        terminated: policy == 0,
        poses: (0..=steps).map(|state| vec![10.0 * state as f64]).collect(),
    }
}

fn film(config: FilmConfig, takes: Vec<Take>) -> Film {
    let drawings = Default::default();
    Film::new(config, Box::new(Shade { drawings }), takes).unwrap()
}

/// The pixel of a policy's frame in the first row of a video, slightly below its caption.
fn pixel(picture: &Picture, policy: u32) -> [u8; 3] {
    let (x, y) = (policy * (64 + GAP) + 5, SMALL.line() + 3);
    let place = 3 * (y * picture.width() + x) as usize;
    picture.pixels()[place..place + 3].try_into().unwrap()
}

#[test]
fn a_film_runs_in_real_time() {
    let fallen = Take {
        policy: 1,
        ..take(0, 4)
    };
    let mut film = film(SMALL, vec![take(0, 30), fallen, take(2, 4)]);
    assert_eq!((film.frames(), film.size()), (20, [132, 124]));
    // Frame 6 is at 0.3 s, which is state 3.
    let picture = film.draw(6).unwrap();
    assert_eq!([pixel(&picture, 0), pixel(&picture, 1)], [[30, 0, 200]; 2]);
    // At 0.4 s the others are in their last state; after that the one that terminated fades.
    assert_eq!(pixel(&film.draw(8).unwrap(), 1), [40, 0, 200]);
    let picture = film.draw(10).unwrap();
    assert_eq!([pixel(&picture, 0), pixel(&picture, 1)], [[50, 0, 200], [168; 3]]);
    let stopped = film.tile(2, 10).unwrap();
    assert_eq!(stopped.pixels()[..3], [40, 0, 200]);
    assert_ne!(stopped, film.tile(2, 8).unwrap(), "the time limit is written over it");
}

#[test]
fn what_stands_still_is_drawn_once() {
    let drawings = std::rc::Rc::new(std::cell::Cell::new(0));
    let stage = Shade {
        drawings: drawings.clone(),
    };
    let mut film = Film::new(SMALL, Box::new(stage), vec![take(0, 30), take(1, 4)]).unwrap();
    for frame in 0..film.frames() {
        film.draw(frame).unwrap();
    }
    // 20 frames, but only every other one shows a new state, and the second one has 5 of them.
    assert_eq!(drawings.get(), 10 + 5);
}

#[test]
fn a_film_is_over_a_second_after_its_last_episode() {
    let config = FilmConfig { seconds: 10.0, ..SMALL };
    let mut film = film(config, vec![take(0, 5), take(1, 4)]);
    assert_eq!(film.frames(), 30);
    assert_eq!(pixel(&film.draw(29).unwrap(), 0), [128 + 250 / 6; 3]);
    // The strip does not wait: its last frame is the end of the longest episode.
    assert_eq!(film.moments(), [0, 2, 4, 6, 8, 10]);
}

#[test]
fn captions_and_endings_are_written() {
    let config = FilmConfig {
        width: 240,
        height: 180,
        ..SMALL
    };
    let mut film = film(config, vec![take(0, 3), take(1, 3)]);
    let [width, line] = [film.size()[0] as usize, config.line() as usize];
    let picture = film.draw(0).unwrap();
    let captions: Vec<&[u8]> = picture.pixels()[..3 * width * line].chunks_exact(3 * width).collect();
    let part = |from: usize| -> Vec<u8> {
        captions
            .iter()
            .flat_map(|row| row[3 * from..][..3 * 240].to_vec())
            .collect()
    };
    assert_eq!(
        part(0),
        caption::line("policy 0, return 1234", Some(0), 240, line as u32).unwrap()
    );
    assert_eq!(
        part(244),
        caption::line("policy 1, return 1234", Some(1), 240, line as u32).unwrap()
    );
    // Policy 0 terminated, policy 1 reached its time limit.
    let [ended, cut] = [&film.rows[0].ending, &film.rows[1].ending];
    let expected =
        |text: &str| caption::line(text, None, caption::width(text, line as u32).unwrap(), line as u32).unwrap();
    assert_eq!(ended.pixels(), expected("ended at 0.30 s"));
    assert_eq!(cut.pixels(), expected("time limit at 0.30 s"));
    let picture = film.draw(19).unwrap();
    let last = &picture.pixels()[3 * width * (line + 170)..][..3 * 240];
    assert!(last.chunks_exact(3).any(|pixel| pixel == [255; 3]) && last[..3] != [255; 3]);
}

#[test]
fn outcomes_stand_after_the_return_in_words_that_fit() {
    let config = FilmConfig {
        width: 240,
        height: 180,
        ..SMALL
    };
    let captions = |outcomes: [&str; 2]| -> [bool; 2] {
        let with = |policy: usize| Take {
            outcome: Some(outcomes[policy].into()),
            ..take(policy, 3)
        };
        let film = film(config, vec![with(0), with(1)]);
        [false, true].map(|short| {
            film.rows.iter().all(|row| {
                let text = row.take.caption(short);
                let expected = caption::line(&text, Some(row.take.policy), 240, config.line()).unwrap();
                row.caption.pixels() == expected
            })
        })
    };
    assert_eq!(captions(["x 1 m", "x 2 m"]), [true, false]);
    // One that is too long shortens both.
    assert_eq!(captions(["x 1 m", "peg in: 12 mm off"]), [false, true]);
    let outcome = Some("peg in: 12 mm off".into());
    let long = Take { outcome, ..take(11, 3) };
    assert_eq!(long.caption(false), "policy 11, return 1234, peg in: 12 mm off");
    assert_eq!(long.caption(true), "policy 11: 1234, peg in: 12 mm off");
}

#[test]
fn policies_stand_in_a_grid() {
    for (policies, size) in [
        (1, [64, 60]),
        (2, [132, 60]),
        (3, [132, 124]),
        (5, [200, 124]),
        (10, [268, 188]),
    ] {
        let takes = (0..policies).map(|policy| take(policy, 3)).collect();
        assert_eq!(film(SMALL, takes).size(), size, "{policies} policies");
    }
}

#[test]
fn a_strip_has_a_row_for_each_policy() {
    let mut film = film(SMALL, vec![take(0, 30), take(1, 4), take(2, 30)]);
    let strip = film.strip().unwrap();
    assert_eq!([strip.width(), strip.height()], [6 * 68 - 4, 12 + 3 * 64]);
    let short = FilmConfig { seconds: 0.01, ..SMALL };
    let mut film = super::Film::new(
        short,
        Box::new(Shade {
            drawings: Default::default(),
        }),
        vec![take(0, 30)],
    )
    .unwrap();
    assert_eq!((film.frames(), film.strip().unwrap().width()), (1, 64));
}

#[test]
fn a_gif_shows_what_was_drawn_in_the_time_it_took() {
    let config = FilmConfig { rate: 30, ..SMALL };
    let mut film = film(config, vec![take(0, 20), take(1, 4)]);
    let mut drawn = 0;
    let (bytes, _) = encode(&mut film, Format::Gif, || drawn += 1).unwrap();
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(&bytes[..]).unwrap();
    assert_eq!(
        (decoder.width(), decoder.height(), decoder.repeat()),
        (132, 60, gif::Repeat::Infinite)
    );
    let (mut canvas, mut time, mut count) = (Vec::new(), 0, 0);
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        canvas.resize(frame.buffer.len(), 0);
        for (old, new) in canvas.chunks_exact_mut(4).zip(frame.buffer.chunks_exact(4)) {
            if new[3] > 0 {
                old.copy_from_slice(new);
            }
        }
        let expected = film.draw(count).unwrap();
        let worst = canvas.chunks_exact(4).zip(expected.pixels().chunks_exact(3));
        let worst = worst
            .flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)))
            .max();
        assert!(worst < Some(32), "picture {count} is off by {worst:?}");
        (time, count) = (time + frame.delay, count + 1);
    }
    assert_eq!((count, drawn, time), (30, 30, 100));
}

#[test]
fn an_animated_png_shows_exactly_what_was_drawn() {
    let mut film = film(SMALL, vec![take(0, 20), take(1, 4)]);
    let (bytes, strip) = encode(&mut film, Format::Apng, || ()).unwrap();
    let mut reader = ::png::Decoder::new(&bytes[..]).read_info().unwrap();
    assert_eq!(reader.info().animation_control.unwrap().num_frames, 20);
    let control = reader.info().frame_control.unwrap();
    assert_eq!((control.delay_num, control.delay_den), (1, 20));
    let mut pixels = vec![0; reader.output_buffer_size()];
    for frame in 0..20 {
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, film.draw(frame).unwrap().pixels(), "picture {frame}");
    }
    let still = png(&strip).unwrap();
    let mut reader = ::png::Decoder::new(&still[..]).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!(pixels, strip.pixels());
}

#[test]
fn impossible_films_are_refused() {
    let refused = |config: FilmConfig, words: &[&str]| {
        let stage = Box::new(Shade {
            drawings: Default::default(),
        });
        let takes = (0..200).map(|policy| take(policy, 3)).collect();
        let error = Film::new(config, stage, takes).err().unwrap().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    refused(
        FilmConfig {
            seconds: f64::NAN,
            ..SMALL
        },
        &["seconds = NaN", "0.01 to 600"],
    );
    refused(FilmConfig { seconds: 0.0, ..SMALL }, &["seconds = 0"]);
    refused(FilmConfig { rate: 0, ..SMALL }, &["rate = 0", "1 to 50"]);
    refused(FilmConfig { rate: 51, ..SMALL }, &["rate = 51"]);
    refused(FilmConfig { width: 31, ..SMALL }, &["31x48", "32 to 4096"]);
    refused(FilmConfig { height: 4097, ..SMALL }, &["64x4097"]);
    refused(
        FilmConfig { height: 500, ..SMALL },
        &["200 policies", "smaller pictures", "fewer policies"],
    );
}

//! Training a stack against the same steps by hand.

use super::*;
use crate::nn::{backward, forward};
use crate::rng::{Purpose, stream};

fn stack(members: usize) -> Stack<f32> {
    let shape = Shape::new(3, &[5], 1).with_extra(2);
    Stack::new(shape, members, AdamConfig::default(), (1.0, 1.0), |p| {
        stream(1, Purpose::PolicyInit, p, 0)
    })
    .with_capacity(8)
}

const INPUT: [f32; 6] = [0.1, -0.4, 0.9, 1.2, 0.0, -0.7];

#[test]
fn a_minibatch_is_forward_loss_backward_clip_and_adam() {
    let (mut by_stack, by_hand) = (stack(2), stack(2));
    let step = Step { rate: 0.01, clip: 0.5 };
    let losses = by_stack.train(|p, network| {
        let input = |scratch: &mut Scratch<f32>| scratch.load_input(&INPUT);
        network.minibatch(step, input, |scratch| {
            let derivative = 3.0 + p as f32;
            scratch.output_delta(0).fill(derivative);
            derivative * scratch.output(0).iter().sum::<f32>()
        })
    });
    for (p, &loss) in losses.iter().enumerate() {
        let mut parameters = by_hand.slice(p).to_vec();
        let (mut scratch, mut gradient) = (Scratch::new(&by_hand.shape, 2), vec![0.0; parameters.len()]);
        scratch.load_input(&INPUT);
        forward(&by_hand.shape, &parameters, &mut scratch);
        let derivative = 3.0 + p as f32;
        assert_eq!(loss, derivative * scratch.output(0).iter().sum::<f32>());
        scratch.output_delta(0).fill(derivative);
        backward(&by_hand.shape, &parameters, &mut scratch, &mut gradient);
        assert!(clip_norm(&mut gradient, 0.5) > 0.5);
        Adam::new(parameters.len()).step(&AdamConfig::default(), 0.01, &mut parameters, &gradient);
        assert_eq!(by_stack.slice(p), parameters);
    }
}

#[test]
fn parts_of_a_minibatch_are_one_step() {
    let (mut in_parts, mut whole) = (stack(1), stack(1));
    let step = Step { rate: 0.01, clip: 1e9 };
    let mut gradients = vec![Gradient::new(&whole.shape); 2];
    in_parts.train_shared(&mut gradients, 0..2, step, 0.25, |k, chunk, part| {
        assert_eq!(k, part);
        chunk.add(
            |scratch| scratch.load_input(&INPUT[3 * k..3 * (k + 1)]),
            |scratch| scratch.output_delta(0).fill(1.0),
        );
    });
    let before = whole.network(0).frozen();
    let mut sum = Gradient::new(&whole.shape);
    let mut scratch = Scratch::new(&whole.shape, 2);
    scratch.load_input(&INPUT);
    whole.network(0).forward(&mut scratch);
    scratch.output_delta(0).fill(1.0);
    whole.network(0).backward(&mut scratch, &mut sum);
    sum.add_decay(0.25, before.network());
    whole.members_mut()[0].descend(&mut sum, step);
    for (part, whole) in in_parts.parameters().iter().zip(whole.parameters()) {
        assert!((part - whole).abs() < 1e-6, "{part} {whole}");
    }
}

#[test]
fn the_repulsion_is_the_gradient_of_an_rbf_kernel_in_the_neighbours() {
    let (stack, h) = (stack(3), 2.0);
    let squares = stack.squared_distances();
    let strengths: Vec<f64> = squares.iter().map(|square| 2.0 / h * (-square / h).exp()).collect();
    let repulsion = stack.repulsion(&strengths);
    let point = |p: usize| -> Vec<f64> { stack.slice(p).iter().map(|&x| f64::from(x)).collect() };
    let k = |a: &[f64], b: &[f64]| (-a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / h).exp();
    for (i, repulsion) in repulsion.iter().enumerate() {
        for axis in [0, 7, stack.shape.parameters() - 3] {
            let derivative = |j: usize| {
                let moved = |by: f64| {
                    let mut neighbour = point(j);
                    neighbour[axis] += by;
                    k(&neighbour, &point(i))
                };
                (moved(1e-5) - moved(-1e-5)) / 2e-5
            };
            let (found, expected) = (f64::from(repulsion.values()[axis]), (0..3).map(derivative).sum::<f64>());
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
    }
}

#[test]
fn an_output_is_rescaled() {
    let mut stack = stack(2);
    let output = |stack: &Stack<f32>, p: usize| {
        let mut values = Vec::new();
        stack.pass(p, &INPUT, |scratch| values.extend_from_slice(scratch.output(0)));
        values
    };
    let before = [output(&stack, 0), output(&stack, 1)];
    stack.rescale_output(1, 2.0, -0.5);
    assert_eq!(output(&stack, 0), before[0]);
    for (after, before) in output(&stack, 1).iter().zip(&before[1]) {
        assert!((after - (2.0 * before - 0.5)).abs() < 1e-6);
    }
}

#[test]
fn extra_parameters_stay_within_bounds() {
    let mut stack = stack(1);
    stack.fill_extra(5.0);
    let mut members = stack.members_mut();
    members[0].clamp_extra(-1.0, 2.0);
    assert_eq!(members[0].network().extra(), [2.0, 2.0]);
}

#[test]
fn an_average_counts_its_first_steps_in_full() {
    use crate::nn::Average;
    let mut stack = stack(1);
    let mut average = Average::new(&stack.shape, 1);
    assert_eq!(average.read(0, stack.network(0)), stack.network(0).frozen());
    let constant = stack.network(0).frozen();
    for _ in 0..3 {
        let member = &stack.members_mut()[0];
        average.members_mut()[0].follow(member, 0.9);
    }
    average.count(3, 0.9);
    let read = average.read(0, stack.network(0));
    for (read, constant) in read.network().values().iter().zip(constant.network().values()) {
        assert!((read - constant).abs() < 1e-6);
    }
}

import { deepEqual, match } from 'node:assert/strict';
import { test } from 'node:test';
import type { Step, Wait } from '@nodepool-builder/image-manager';
import { NOW, type Situation } from './situation.ts';

/** A situation and its plan. */
export interface Row {
  readonly given: Situation;
  /** Steps as {@link stepInWords} formats them, in any order. */
  readonly steps: readonly string[];
  /** Patterns of the waits, in order; none by default. */
  readonly waits?: readonly RegExp[];
}

/** Declares a test for each row, with its key as the title. */
export function testSituations(rows: Readonly<Record<string, Row>>): void {
  for (const [sentence, { given, steps, waits = [] }] of Object.entries(rows)) {
    test(sentence, () => {
      const plan = given.plan();
      deepEqual(plan.steps.map(stepInWords).toSorted(), [...steps].toSorted());
      const found = plan.waits.map(waitInWords);
      deepEqual(found.length, waits.length, found.join('\n'));
      for (const [index, wait] of waits.entries()) match(found[index] ?? '', wait);
    });
  }
}

/** Formats a step as `upload 7 to cloud/debian`, with numbers for ids. */
export function stepInWords(step: Step): string {
  switch (step.kind) {
    case 'build':
      return `build ${step.diskimage}`;
    case 'upload':
      return `upload ${numberIn(step.imageId)} to ${step.provider}/${step.imageName}`;
    case 'prune':
      return `prune builds ${step.builds.map(numberIn).join()}; uploads ${step.uploads.map(numberIn).join()}`;
    default:
      return `${step.kind} ${numberIn(step.id)}`;
  }
}

/** Formats a wait as `diskimage debian: it is paused (60 s)`. */
function waitInWords({ subject, reason, until }: Wait): string {
  return `${subject}: ${reason}${until === undefined ? '' : ` (${(until - NOW) / 1000} s)`}`;
}

function numberIn(id: string): number {
  return Number(id.split('-').at(-2));
}

import { deepEqual, match } from 'node:assert/strict';
import { test } from 'node:test';
import type { Step, Wait } from '@nodepool-builder/image-manager';
import { NOW, type Situation } from './situation.ts';

/** What is planned in a situation. */
export interface Row {
  readonly given: Situation;
  /** As {@link stepInWords} has them, in any order. */
  readonly steps: readonly string[];
  /** What the waits say, in order; by default nothing waits. */
  readonly waits?: readonly RegExp[];
}

/** A test for each row, by its sentence. */
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

/** `upload 7 to cloud/debian`: what is done, with numbers for ids. */
export function stepInWords(step: Step): string {
  switch (step.act) {
    case 'build':
      return `build ${step.diskimage}`;
    case 'upload':
      return `upload ${numberIn(step.imageId)} to ${step.provider}/${step.imageName}`;
    case 'prune':
      return `prune builds ${step.builds.map(numberIn).join()}; uploads ${step.uploads.map(numberIn).join()}`;
    case 'resume-build':
    case 'delete-build':
      return `${step.act} ${numberIn(step.imageId)}`;
    case 'resume-upload':
    case 'delete-upload':
    case 'discard':
      return `${step.act} ${numberIn(step.uploadId)}`;
  }
}

/** `diskimage debian: it is paused (60 s)`. */
function waitInWords({ subject, reason, until }: Wait): string {
  return `${subject}: ${reason}${until === undefined ? '' : ` (${(until - NOW) / 1000} s)`}`;
}

function numberIn(id: string): number {
  return Number(id.split('-').at(-2));
}

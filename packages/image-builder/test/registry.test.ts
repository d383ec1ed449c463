import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BaseImageBuilder, createImageBuilder, DibBuilder, IMAGE_BUILDERS } from '../src/index.ts';
import { withCode } from './with-code.ts';

const DISKIMAGE = { name: 'debian', formats: [] };

class MyBuilder extends BaseImageBuilder {
  protected override createImage(): Promise<void> {
    return Promise.resolve();
  }
}

test('dib is there', () => {
  const builder = createImageBuilder('dib', DISKIMAGE);
  assert.ok(builder instanceof DibBuilder);
  assert.equal(builder.diskimage, DISKIMAGE);
});

test('builders of one’s own stand beside it', () => {
  assert.ok(
    createImageBuilder('mine', DISKIMAGE, { ...IMAGE_BUILDERS, mine: MyBuilder }) instanceof MyBuilder,
  );
});

test('an unknown builder is refused, with those that are there', () => {
  for (const name of ['mine', 'toString']) {
    assert.throws(() => createImageBuilder(name, DISKIMAGE), withCode('builder-unknown', /use one of: dib$/));
  }
});

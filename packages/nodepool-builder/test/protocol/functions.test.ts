import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { functionName, imageFunctions, isOffered, subjectOf, verbOf } from '../../src/protocol/functions.ts';

describe('the functions of images that a builder offers', () => {
  it('a builder’s image functions follow from the images that it has', () => {
    const repository = { images: new Set(['0001']), pendingDeletes: new Set(['0000']) };
    const waiting = new Set(['image-upload:9999']);
    const offered = ['0000', '0001', '0002', '9999']
      .flatMap(imageFunctions)
      .filter((name) => isOffered(name, repository, waiting));
    assert.deepEqual(offered, [
      'image-delete:0000',
      'image-upload:0001',
      'image-delete:0001',
      'image-upload:9999',
    ]);
  });

  it('an image function’s subject may contain a colon', () => {
    assert.equal(verbOf('image-build:debian:12'), 'image-build');
    assert.equal(subjectOf(functionName('image-build', 'debian:12')), 'debian:12');
  });
});

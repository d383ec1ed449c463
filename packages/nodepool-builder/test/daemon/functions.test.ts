import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { functionName, offeredFunctions, subjectOf, verbOf } from '../../src/daemon/functions.ts';

describe('the functions that a builder offers', () => {
  it('follow from what it can build and what it holds', () => {
    const offer = offeredFunctions({
      diskimages: ['debian', 'centos'],
      images: ['0001'],
      pendingDeletes: ['0000'],
      waiting: ['image-upload:9999'],
    });
    assert.deepEqual(
      [...offer],
      [
        'image-upload:9999',
        'image-build:debian',
        'image-build:centos',
        'image-upload:0001',
        'image-delete:0001',
        'image-delete:0000',
      ],
    );
  });

  it('may have a colon in their subject', () => {
    assert.equal(verbOf('image-build:debian:12'), 'image-build');
    assert.equal(subjectOf(functionName('image-build', 'debian:12')), 'debian:12');
  });
});

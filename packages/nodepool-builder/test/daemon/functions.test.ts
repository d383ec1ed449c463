import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { functionName, offeredFunctions, subjectOf } from '../../src/daemon/functions.ts';

describe('the functions that a builder offers', () => {
  it('follow from what it can build and what it holds', () => {
    const offer = offeredFunctions({
      diskimages: ['debian', 'centos'],
      images: ['0001'],
      pendingDeletes: ['0000'],
      waiting: new Map([['image-upload:9999', 'image-upload']]),
    });
    assert.deepEqual(
      [...offer],
      [
        ['image-upload:9999', 'image-upload'],
        ['image-build:debian', 'image-build'],
        ['image-build:centos', 'image-build'],
        ['image-upload:0001', 'image-upload'],
        ['image-delete:0001', 'image-delete'],
        ['image-delete:0000', 'image-delete'],
      ],
    );
  });

  it('carry a name that may hold a colon', () => {
    assert.equal(subjectOf(functionName('image-build', 'debian:12')), 'debian:12');
  });
});

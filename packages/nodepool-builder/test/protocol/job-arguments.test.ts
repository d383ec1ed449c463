import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseBuildArguments, parseUploadArguments } from '../../src/protocol/job-arguments.ts';
import { JobError } from '../../src/protocol/job-reply.ts';

describe('the argument of image-build', () => {
  it('the image-build argument names the image, and other keys are ignored', () => {
    assert.equal(parseBuildArguments(Buffer.from('{"image-id": "0001", "more": 1}'))['image-id'], '0001');
  });

  const bad: readonly (readonly [payload: string, reason: RegExp])[] = [
    ['', /is invalid: it is not JSON; send \{"image-id": "<id>"\}/],
    ['{"image-id": "00', /not JSON/],
    ['{}', /image-id is missing/],
    ['{"image_id": "0001"}', /image-id is missing/],
    ['{"image-id": 1}', /image-id is not a string/],
    ['{"image-id": null}', /image-id is not a string/],
    ['"0001"', /is not an object/],
    ['[]', /is not an object/],
  ];
  for (const [payload, reason] of bad) {
    it(`the image-build argument is rejected if it is ${payload || 'empty'}`, () => {
      assert.throws(
        () => parseBuildArguments(Buffer.from(payload)),
        (error) => error instanceof JobError && reason.test(error.message),
      );
    });
  }
});

describe('the argument of image-upload', () => {
  it('the image-upload argument names the provider and its image', () => {
    assert.deepEqual(parseUploadArguments(Buffer.from('{"provider": "pool", "image-name": "debian"}')), {
      provider: 'pool',
      'image-name': 'debian',
    });
  });

  it('the image-upload argument is rejected if a key is missing', () => {
    assert.throws(() => parseUploadArguments(Buffer.from('{"provider": "pool"}')), /image-name is missing/);
  });
});

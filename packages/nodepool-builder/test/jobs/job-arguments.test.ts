import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  InvalidArgumentsError,
  parseBuildArguments,
  parseUploadArguments,
} from '../../src/jobs/job-arguments.ts';

describe('the argument of image-build', () => {
  it('names the image; other keys are ignored', () => {
    assert.equal(parseBuildArguments(Buffer.from('{"image-id": "0001", "more": 1}'))['image-id'], '0001');
  });

  const bad: readonly (readonly [payload: string, reason: RegExp])[] = [
    ['', /not JSON; send \{"image-id": "<id>"\}/],
    ['{"image-id": "00', /not JSON/],
    ['{}', /must have required property 'image-id'/],
    ['{"image_id": "0001"}', /must have required property 'image-id'/],
    ['{"image-id": 1}', /"image-id" must be string/],
    ['{"image-id": null}', /"image-id" must be string/],
    ['"0001"', /must be object/],
    ['[]', /must be object/],
  ];
  for (const [payload, reason] of bad) {
    it(`cannot be ${payload || 'empty'}`, () => {
      assert.throws(
        () => parseBuildArguments(Buffer.from(payload)),
        (error) => error instanceof InvalidArgumentsError && reason.test(error.message),
      );
    });
  }
});

describe('the argument of image-upload', () => {
  it('names the provider and its image', () => {
    assert.deepEqual(parseUploadArguments(Buffer.from('{"provider": "pool", "image-name": "debian"}')), {
      provider: 'pool',
      'image-name': 'debian',
    });
  });

  it('is rejected if a key is missing', () => {
    assert.throws(
      () => parseUploadArguments(Buffer.from('{"provider": "pool"}')),
      /required property 'image-name'/,
    );
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { finishedJobs } from '../../src/polling/build-reports.ts';

function jobs(message: string): readonly string[] {
  return [...finishedJobs(Buffer.from(message))];
}

describe("a message of Zuul's MQTT reporter", () => {
  test('names the jobs with a finished build, whatever its result', () => {
    const message = {
      action: 'success',
      tenant: 'example',
      pipeline: 'periodic',
      project: 'opendev/system-config',
      buildset: {
        uuid: 'c0',
        result: 'SUCCESS',
        builds: [
          { job_name: 'build-noble', uuid: 'b1', result: 'SUCCESS', artifacts: [] },
          { job_name: 'build-jammy', uuid: 'b2', result: 'FAILURE' },
          { job_name: 'build-bookworm', uuid: 'b3', result: 'the image is there' },
          { job_name: 'build-trixie', uuid: 'b4', result: null },
        ],
      },
    };
    assert.deepEqual(jobs(JSON.stringify(message)), ['build-noble', 'build-jammy', 'build-bookworm']);
  });

  test('names none at the start, when builds have no results', () => {
    assert.deepEqual(jobs('{"action": "start", "buildset": {"builds": [{"job_name": "build-noble"}]}}'), []);
  });

  test('may hold builds of any kind', () => {
    assert.deepEqual(jobs('{"buildset": {"builds": [null, 1, {"result": "SUCCESS", "job_name": 1}]}}'), []);
  });

  for (const [what, message] of Object.entries({
    'no JSON': 'noble was built',
    'no object': 'null',
    'no builds': '{"buildset": {}}',
    'another kind of builds': '{"buildset": {"builds": {"result": "SUCCESS"}}}',
  })) {
    test(`is none with ${what}`, () => {
      assert.throws(() => jobs(message), Error);
    });
  }

  test('is none in another encoding', () => {
    assert.throws(() => finishedJobs(Buffer.from([0x7b, 0xff, 0x7d])), Error);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { finishedJobs } from '../../src/polling/build-reports.ts';

function jobs(message: string): readonly string[] {
  return [...finishedJobs(Buffer.from(message))];
}

describe("a message of Zuul's MQTT reporter", () => {
  test('an MQTT message names the jobs with a finished build, whatever its result', () => {
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

  test('an MQTT message names no job at the start, when builds have no results', () => {
    assert.deepEqual(jobs('{"action": "start", "buildset": {"builds": [{"job_name": "build-noble"}]}}'), []);
  });

  test('an MQTT message may have builds in another form, which are ignored', () => {
    const finished = { job_name: 'build-noble', result: 'SUCCESS' };
    const others = [null, 'SUCCESS', { result: 'SUCCESS', job_name: 1 }, { job_name: 'a', result: 1 }];
    const message = { buildset: { builds: [...others, finished] } };
    assert.deepEqual(jobs(JSON.stringify(message)), ['build-noble']);
  });

  for (const [what, message] of Object.entries({
    'text that is not JSON': 'noble was built',
    null: 'null',
    'a buildset without builds': '{"buildset": {}}',
    'builds that are not a list': '{"buildset": {"builds": {"result": "SUCCESS"}}}',
  })) {
    test(`an MQTT message is rejected if it contains ${what}`, () => {
      assert.throws(() => jobs(message), Error);
    });
  }

  test('an MQTT message is rejected in another encoding', () => {
    assert.throws(() => finishedJobs(Buffer.from([0x7b, 0xff, 0x7d])), Error);
  });
});

// Not a unit test: it waits for a time limit.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { type Check, runChecks } from '../../../src/commands/doctor/checks.ts';

const NEVER = new AbortController().signal;

function check(area: Check['area'], ...results: readonly (CheckResult | Error)[]): Check {
  return {
    area,
    subject: 'a part',
    async *run() {
      for (const result of results) {
        if (result instanceof Error) throw result;
        yield result;
      }
    },
  };
}

const LACKS = { subject: 'program sgdisk', status: 'problem', remedy: 'install it' } as const;

describe('the checks of a site', () => {
  it('a site’s checks are shown by area, in the order of the areas', async () => {
    const records = await runChecks(
      [
        check('clock', { subject: 'a', status: 'ok', message: 'right' }),
        check('tools', { subject: 'b', status: 'ok', message: 'there', area: 'rights' }),
        check('tools', { subject: 'c', status: 'ok', message: 'there' }),
      ],
      5,
      NEVER,
    );
    assert.deepEqual(
      records.map(({ area, subject, remedy }) => [area, subject, remedy]),
      [
        ['tools', 'c', null],
        ['rights', 'b', null],
        ['clock', 'a', null],
      ],
    );
  });

  it('a site’s checks name once what several disk images lack', async () => {
    const records = await runChecks(
      ['a', 'b', 'c'].map((name) => check('tools', { ...LACKS, message: `is missing; ${name} needs it` })),
      5,
      NEVER,
    );
    assert.deepEqual(
      records.map(({ message }) => message),
      ['is missing; a needs it (and 2 more)'],
    );
  });

  it('a site’s checks keep the results before an error, whose last part is the remedy', async () => {
    const good = { subject: 'first', status: 'ok', message: 'good' } as const;
    const records = await runChecks([check('manager', good, new Error('it broke; mend it'))], 5, NEVER);
    assert.deepEqual(records, [
      { area: 'manager', ...good, remedy: null },
      { area: 'manager', subject: 'a part', status: 'problem', message: 'it broke', remedy: 'mend it' },
    ]);
  });

  it('a site’s checks have a time limit that may exceed the limit of Node’s timers', async () => {
    const slow: Check = {
      area: 'clock',
      subject: 'NTP',
      async *run() {
        await delay(50);
        yield { subject: 'NTP', status: 'ok', message: 'good' };
      },
    };
    const records = await runChecks([slow], 3_000_000, NEVER);
    assert.deepEqual(
      records.map(({ message }) => message),
      ['good'],
    );
  });

  it('a site’s checks do not wait for one that neither returns nor ends', async () => {
    const hanging: Check = {
      area: 'providers',
      subject: 'provider west',
      async *run() {
        yield { subject: 'credentials', status: 'ok', message: 'good' };
        await new Promise(() => {});
      },
    };
    const [first, second] = await runChecks([hanging], 0.05, NEVER);
    assert.equal(first?.message, 'good');
    assert.partialDeepStrictEqual(second, {
      subject: 'provider west',
      status: 'problem',
      message: 'did not end within 0.05 s',
    });
    assert.match(second?.remedy ?? '', /--timeout/);
  });

  it('a site’s checks show neither secrets nor control characters', async () => {
    const message = 'refuses hunter2-long\u001B[2J';
    const [record] = await runChecks(
      [check('sources', { subject: 'Zuul', status: 'problem', message, remedy: 'x' })],
      5,
      NEVER,
      ['hunter2-long'],
    );
    assert.match(record?.message ?? '', /^refuses \*+\P{Cc}+$/u);
  });

  it('a site’s checks end with the reason of an aborted signal', async () => {
    const reason = new Error('stopped');
    await assert.rejects(runChecks([check('clock')], 5, AbortSignal.abort(reason)), reason);
  });
});

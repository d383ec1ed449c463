import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PROGRESS_COLUMN } from '../../src/commands/progress.ts';
import { ageColumn, type Column, EXTERNAL_ID, formatTime, textTable } from '../../src/commands/table.ts';
import { progressOf } from '../../src/site/work.ts';
import { formatAge } from '../../src/terms/units.ts';

const IMAGE_ID = 'debian-bookworm-0000000042-k7f3q2xa';
const REASON =
  'the newest build, debian-bookworm-0000000041-k7f3q2xa, is 25 hours old; rebuild-age is 24 hours';
const WITH_REASON: readonly Column[] = [{ heading: 'IMAGE-ID' }, { heading: 'REASON', long: 'words' }];

describe('a table', () => {
  it('a table shows spaces in place of control characters, but keeps line breaks', async () => {
    const records = [
      { image: 'a', reason: 'exit code 1:\tno space\r\nleft' },
      { image: 'b\u001B[31m', reason: null },
    ];
    assert.equal(
      await textTable(records, [{ heading: 'IMAGE' }, { heading: 'REASON', long: 'words' }]),
      ['IMAGE   REASON', 'a       exit code 1: no space', '        left', 'b [31m  -'].join('\n'),
    );
  });

  it('a table that is too wide wraps a reason in its column', async () => {
    assert.equal(
      await textTable([{ 'image-id': IMAGE_ID, reason: REASON }], WITH_REASON, 80),
      [
        'IMAGE-ID                             REASON',
        `${IMAGE_ID}  the newest build,`,
        '                                     debian-bookworm-0000000041-k7f3q2xa, is 25',
        '                                     hours old; rebuild-age is 24 hours',
      ].join('\n'),
    );
  });

  it('a table shows long values below the row if their column would be narrow', async () => {
    const columns = [...WITH_REASON, EXTERNAL_ID];
    const record = {
      'image-id': IMAGE_ID,
      reason: REASON,
      'external-id': '9a1f6cbe-35a0-4b12-a0ab-9a3a80c53ad1',
    };
    const other = { 'image-id': 'debian-7', reason: null, 'external-id': 'pool-debian-7.qcow2' };
    assert.equal(
      await textTable([record, other], columns, 70),
      [
        'IMAGE-ID',
        IMAGE_ID,
        '  reason: the newest build, debian-bookworm-0000000041-k7f3q2xa, is 25',
        '    hours old; rebuild-age is 24 hours',
        '  external-id: 9a1f6cbe-35a0-4b12-a0ab-9a3a80c53ad1',
        'debian-7',
        '  external-id: pool-debian-7.qcow2',
      ].join('\n'),
    );
  });

  it('a table shortens ids only if it is too wide, and shows whole ids below the rows', async () => {
    const columns: readonly Column[] = [{ heading: 'IMAGE-ID' }, EXTERNAL_ID];
    const record = { 'image-id': 'debian-7', 'external-id': 'pool-debian-7.qcow2' };
    assert.equal(
      await textTable([record], columns, 29),
      'IMAGE-ID  EXTERNAL-ID\ndebian-7  pool-debian-7.qcow2',
    );
    assert.equal(await textTable([record], columns, 28), 'IMAGE-ID  EXTERNAL-ID\ndebian-7  pool-….qcow2');
    assert.equal(
      await textTable([record], columns, 20),
      'IMAGE-ID\ndebian-7\n  external-id:\n    pool-debian-7.qc\n    ow2',
    );
  });

  it('a table shows a reason below the row instead of in a narrow column, and breaks no path', async () => {
    const path = '/opt/nodepool/images/.nodepool-builder/staging/debian-20161118140211-9f3c/tmp/chroot';
    const reason = `"mount" ended with exit code 32, saying: ${path}: mount point does not exist`;
    for (const [id, width] of [
      ['debian-7', 80],
      ['debian-7', 100],
      [IMAGE_ID, 80],
      [IMAGE_ID, 100],
      [IMAGE_ID, 120],
    ] as const) {
      const text = await textTable([{ 'image-id': id, reason }], WITH_REASON, width);
      const lines = text.split('\n');
      assert.equal(
        lines.filter((line) => line.includes(`${path}:`)).length,
        width > path.length ? 1 : 0,
        text,
      );
      assert.ok(lines.length <= 6, text);
      for (const line of lines) assert.ok(line.length <= width, line);
    }
    const long = await textTable(
      [{ 'image-id': 'a', reason: `/${'directory/'.repeat(20)}file` }],
      WITH_REASON,
      80,
    );
    for (const line of long.split('\n').slice(2, -1)) assert.match(line, /[:/]$/);
  });

  it('a table is never wider than requested, whatever the length of a reason', async () => {
    for (const length of [10, 60, 61, 62, 63, 100, 5000]) {
      for (const reason of [
        'x'.repeat(length),
        'several words '.repeat(length / 10),
        'line\n'.repeat(length),
      ]) {
        const text = await textTable([{ 'image-id': IMAGE_ID, reason }], WITH_REASON);
        for (const line of text.split('\n')) assert.ok(line.length <= 100, line);
      }
    }
  });

  it('a table shows progress and its host, but no column for it if nothing runs', async () => {
    const columns = [{ heading: 'IMAGE-ID' }, PROGRESS_COLUMN];
    const one = { 'image-id': 'a', state: 'ready', ...progressOf(undefined) };
    const other = {
      'image-id': 'b',
      state: 'building',
      percent: 35,
      'bytes-per-second': 2 ** 20,
      'seconds-left': 185,
      host: 'west1',
    };
    assert.equal(await textTable([one], columns), 'IMAGE-ID\na');
    assert.equal(
      await textTable([one, other], columns),
      ['IMAGE-ID  PROGRESS', 'a         -', 'b         35 %, 1.0 MiB/s, 3 min 5 s left on west1'].join('\n'),
    );
  });

  it('a table shows the age of a time, and - without one', async () => {
    const requested = new Date(Date.now() - 3 * 86_400_000 - 4 * 3_600_000 - 60_000).toISOString();
    assert.equal(
      await textTable([{ requested }, { requested: null }], [ageColumn('requested')]),
      'AGE\n3 d 4 h\n-',
    );
  });
});

it('an age is shown in its two largest units', () => {
  const ages = [-5, 0, 45, 60, 725, 3600, 15_000, 86_400, 86_401, 273_700].map((seconds) =>
    formatAge(seconds * 1000),
  );
  assert.deepEqual(ages, [
    '0 s',
    '0 s',
    '45 s',
    '1 min',
    '12 min 5 s',
    '1 h',
    '4 h 10 min',
    '1 d',
    '1 d',
    '3 d 4 h',
  ]);
});

it('a time is shown in local time, to the minute, and other text is shown unchanged', () => {
  const local = new Date(2026, 4, 1, 14, 2, 11);
  assert.equal(formatTime(local.toISOString()), '2026-05-01 14:02');
  assert.equal(formatTime('seen twice'), 'seen twice');
});

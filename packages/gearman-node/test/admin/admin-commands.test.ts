import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkDone,
  formatCommand,
  parseJob,
  parsePid,
  parsePriorityStatus,
  parseStatus,
  parseValue,
  parseWorker,
} from '../../src/admin/admin-commands.ts';

test('an admin command is written as one line of text', () => {
  assert.equal(formatCommand('status', []), 'status\n');
  assert.equal(formatCommand('maxqueue', ['f', 10]), 'maxqueue f 10\n');
  assert.equal(formatCommand('cancel job', ['H:x:1']), 'cancel job H:x:1\n');
  assert.equal(formatCommand('create function', ['f']), 'create function f\r\n');
});

test('an admin command rejects an argument with white space or a line break', () => {
  for (const argument of ['', 'a b', 'a\tb', 'a\nshutdown', 'a\r']) {
    assert.throws(() => formatCommand('drop function', [argument]), { code: 'invalid-argument' });
  }
});

test('a status line is parsed from its end because a function name may contain tabs', () => {
  assert.deepEqual(parseStatus('image-build:debian\t3\t1\t2'), {
    name: 'image-build:debian',
    total: 3,
    running: 1,
    availableWorkers: 2,
  });
  assert.equal(parseStatus('a\tb\t3\t1\t2').name, 'a\tb');
  assert.deepEqual(parsePriorityStatus('f\t1\t2\t3\t4'), {
    name: 'f',
    high: 1,
    normal: 2,
    low: 3,
    availableWorkers: 4,
  });
});

test('a workers line yields the file descriptor, address, client id and functions', () => {
  assert.deepEqual(parseWorker('38 127.0.0.1 builder-1 : f image-build:debian'), {
    fd: 38,
    ip: '127.0.0.1',
    clientId: 'builder-1',
    functions: ['f', 'image-build:debian'],
  });
  assert.deepEqual(parseWorker('38 ::1 - :').functions, []);
  assert.equal(parseWorker('38 ::1 - :').ip, '::1');
});

test('a show jobs line yields the handle, retries, and the ignored and background flags', () => {
  assert.deepEqual(parseJob('H:x:1\t2\t0\t1'), {
    handle: 'H:x:1',
    retries: 2,
    ignored: false,
    background: true,
  });
  assert.equal(parseJob('H:x:1\t0\t1\t0').ignored, true);
});

test('the prefix OK of an admin value is optional because Perl’s server omits it', () => {
  assert.equal(parseValue('OK 1.1.20'), '1.1.20');
  assert.equal(parseValue('1.130'), '1.130');
  assert.equal(parsePid('OK 4711'), 4711);
});

const MALFORMED = [
  [
    parseStatus,
    [
      '',
      'f',
      'f\t1\t2',
      'f\t1\t2\tx',
      'f\t1\t\t2',
      'f\t-1\t2\t3',
      'f\t1e5\t2\t3',
      'f\t9007199254740992\t2\t3',
      'ERR X\t1\t2',
    ],
  ],
  [parsePriorityStatus, ['f\t1\t2\t3', 'f\t1\t2\t3\tInfinity']],
  [parseWorker, ['', `${'9'.repeat(400)} 127.0.0.1 - :`, 'x 127.0.0.1 - :', '38 127.0.0.1 -', 'f\t1\t2\t3']],
  [parseJob, ['H:x:1', 'H:x:1\t0\t1\tno']],
  [parsePid, ['OK', 'OK x', '', `OK ${'9'.repeat(400)}`]],
  [checkDone, ['', 'ok', 'f\t1\t2\t3', '.']],
] as const;

for (const [parse, lines] of MALFORMED) {
  test(`the admin client’s ${parse.name} rejects an invalid line`, () => {
    for (const line of lines) {
      assert.throws(
        () => parse(line),
        { name: 'ProtocolError', code: 'reply-malformed' },
        JSON.stringify(line),
      );
    }
  });
}

test('the error for a long invalid admin line shows only its beginning', () => {
  assert.throws(() => parseStatus('x'.repeat(5000)), { message: /"x{80}"/ });
});

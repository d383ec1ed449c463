import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatCommand,
  parseJob,
  parsePriorityStatus,
  parseStatus,
  parseWorker,
} from '../../src/admin/admin-commands.ts';

test('a command is one line', () => {
  assert.equal(formatCommand('status', []), 'status\n');
  assert.equal(formatCommand('maxQueue', ['f', 10]), 'maxqueue f 10\n');
  assert.equal(formatCommand('cancelJob', ['H:x:1']), 'cancel job H:x:1\n');
  assert.equal(formatCommand('createFunction', ['f']), 'create function f\r\n');
});

test('an argument that would end early, or begin another command, is refused', () => {
  for (const argument of ['', 'a b', 'a\tb', 'a\nshutdown', 'a\r']) {
    assert.throws(() => formatCommand('dropFunction', [argument]), { code: 'invalid-argument' });
  }
});

test('status lines are read from the end: a name may hold tabs', () => {
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

test('worker lines', () => {
  assert.deepEqual(parseWorker('38 127.0.0.1 builder-1 : f image-build:debian'), {
    fd: 38,
    ip: '127.0.0.1',
    clientId: 'builder-1',
    functions: ['f', 'image-build:debian'],
  });
  assert.deepEqual(parseWorker('38 ::1 - :').functions, []);
  assert.equal(parseWorker('38 ::1 - :').ip, '::1');
});

test('job lines', () => {
  assert.deepEqual(parseJob('H:x:1\t2\t0\t1'), {
    handle: 'H:x:1',
    retries: 2,
    ignored: false,
    background: true,
  });
  assert.equal(parseJob('H:x:1\t0\t1\t0').ignored, true);
});

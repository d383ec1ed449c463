import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { copyFile, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { untilGone } from '../../../../test/fixtures/running-process.ts';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { BuildNamespace } from '../../src/cleanup/build-namespace.ts';
import { type CommandOptions, runCommand } from '../../src/process/command.ts';

async function shell(t: TestContext, script: string, options: Partial<CommandOptions> = {}) {
  return await runCommand('sh', ['-c', script], { cwd: await temporaryDirectory(t), ...options });
}

test('a command’s result has its exit code and last lines', async (t) => {
  const lines: string[] = [];
  const result = await shell(t, 'echo one; echo; echo two >&2; exit 3', {
    onLine: (line) => void lines.push(line),
  });
  assert.equal(result.exitCode, 3);
  assert.deepEqual(result.decisiveLines.toSorted(), ['one', 'two']);
  assert.equal(lines.length, 3);
});

test('a command’s line that is written in parts stays whole if it writes to the other stream in between', async (t) => {
  const lines: string[] = [];
  const parts: string[] = [];
  const script = 'printf "pass"; until [ -e seen ]; do sleep 0.01; done; echo two >&2; echo word';
  const cwd = await temporaryDirectory(t);
  await shell(t, script, {
    cwd,
    onPartialLine: (text) => {
      parts.push(text);
      writeFileSync(join(cwd, 'seen'), '');
    },
    onLine: (line) => void lines.push(line),
  });
  assert.deepEqual([parts[0], lines.toSorted()], ['pass', ['password', 'two']]);
});

test('a command’s result names the signal that ended it', async (t) => {
  const { exitCode, signal } = await shell(t, 'kill -KILL $$');
  assert.deepEqual({ exitCode, signal }, { exitCode: undefined, signal: 'SIGKILL' });
});

test('a command’s result shows whether the output mentions a full disk', async (t) => {
  assert.equal((await shell(t, 'echo "cp: write error: No space left on device"; exit 1')).diskFull, true);
  assert.equal((await shell(t, 'echo fine')).diskFull, false);
});

test('a command has closed input, and leads a process group of its own', async (t) => {
  const lines: string[] = [];
  let pid = 0;
  await shell(t, 'cat; cut -d" " -f5 /proc/self/stat', {
    onStart: (started) => (pid = started),
    onLine: (line) => void lines.push(line),
  });
  assert.deepEqual(lines, [`${pid}`]);
});

test('a command gets only the given environment', async (t) => {
  const lines: string[] = [];
  await runCommand('/usr/bin/env', [], {
    cwd: '/',
    env: { ONE: '1' },
    onLine: (line) => void lines.push(line),
  });
  assert.deepEqual(lines, ['ONE=1']);
  await temporaryDirectory(t);
});

test('a command’s output is read completely, however slowly', async (t) => {
  let lines = 0;
  await shell(t, 'yes | head -n 20000', {
    onLine: (line) => {
      if (line === 'y') lines += 1;
      return lines % 5000 === 0 ? delay(1) : undefined;
    },
  });
  assert.equal(lines, 20_000);
});

interface NotStarted {
  readonly what: string;
  readonly prepare: (directory: string) => Promise<string>;
  readonly args?: readonly string[];
  readonly message: RegExp;
}

const NOT_STARTED: readonly NotStarted[] = [
  {
    what: 'ENOENT',
    prepare: () => Promise.resolve('no-such-command'),
    message: /"no-such-command" is not installed, or not on PATH; install it/,
  },
  {
    what: 'EACCES',
    prepare: (directory) => writeProgram(directory, 0o644),
    message: /"\/.*\/program" is not executable; grant the user .* execute permission/,
  },
  {
    what: 'EACCES of a directory',
    prepare: (directory) => Promise.resolve(directory),
    message: /is not executable/,
  },
  {
    what: 'ENOTDIR',
    prepare: async (directory) => `${await writeProgram(directory)}/more`,
    message: /more" does not exist; correct its path/,
  },
  {
    what: 'E2BIG',
    prepare: writeProgram,
    args: ['x'.repeat(4 * 1024 * 1024)],
    message: /program" gets more arguments and variables than the kernel accepts/,
  },
];

async function writeProgram(directory: string, mode = 0o755): Promise<string> {
  const path = join(directory, 'program');
  await writeFile(path, '#!/bin/sh\n', { mode });
  return path;
}

for (const { what, prepare, args = [], message } of NOT_STARTED) {
  test(`a command that cannot be started (${what}) fails at once, also in a namespace`, async (t) => {
    const cwd = await temporaryDirectory(t);
    const command = await prepare(cwd);
    await assert.rejects(runCommand(command, args, { cwd }), withCode('command-not-found', message));
    const namespace = await BuildNamespace.open(() => {});
    assert.ok(typeof namespace !== 'string');
    t.after(() => namespace.close());
    const wrap: CommandOptions['wrap'] = (...wrapped) => namespace.enter(...wrapped);
    await assert.rejects(runCommand(command, args, { cwd, wrap }), withCode('command-not-found', message));
  });
}

test('a command that is being written may be started later', async (t) => {
  const cwd = await temporaryDirectory(t);
  const path = join(cwd, 'program');
  await copyFile('/bin/true', path);
  const handle = await open(path, 'r+');
  t.after(() => handle.close());
  await assert.rejects(runCommand(path, [], { cwd }), withCode('command-failed', /is being written/));
});

test('a missing working directory is not reported as a missing command', async (t) => {
  const cwd = join(await temporaryDirectory(t), 'missing');
  await assert.rejects(
    runCommand('true', [], { cwd }),
    withCode('directory-not-usable', /its directory ".*\/missing" does not exist/),
  );
});

test('an abort ends a command’s whole process group, and rejects with the reason', async (t) => {
  const abort = new AbortController();
  const reason = new Error('enough');
  let child = 0;
  const run = shell(t, 'sleep 600 & echo $!; wait', {
    signal: abort.signal,
    onLine: (line) => {
      child = Number(line);
      abort.abort(reason);
    },
  });
  await assert.rejects(run, reason);
  await untilGone(child);
});

test('a command that ignores SIGTERM gets SIGKILL', async (t) => {
  const abort = new AbortController();
  const run = shell(t, 'trap "" TERM; echo deaf; while :; do sleep 600; done', {
    signal: abort.signal,
    gracePeriod: 50,
    onLine: () => abort.abort(new Error('enough')),
  });
  await assert.rejects(run, /enough/);
});

test('a command whose signal is already aborted is not started', async () => {
  const options = { cwd: '/', signal: AbortSignal.abort(), onStart: () => assert.fail('it was started') };
  await assert.rejects(runCommand('true', [], options), { name: 'AbortError' });
});

test('processes that a command leaves in its group are ended', async (t) => {
  const { decisiveLines, exitCode } = await shell(t, 'sleep 600 & echo $!');
  assert.equal(exitCode, 0);
  await untilGone(Number(decisiveLines[0]));
});

test('a process that left a command’s group with the pipe does not delay the result', async (t) => {
  // The sixth field is the session.
  const hasLeft = '[ "$(cut -d " " -f 6 /proc/$!/stat)" = $! ]';
  const script = `setsid sleep 600 & until ${hasLeft}; do sleep 0.01; done; echo $!`;
  const { decisiveLines } = await shell(t, script);
  process.kill(Number(decisiveLines[0]));
});

test('an error in the output listener ends the command', async (t) => {
  const run = shell(t, 'yes', {
    onLine: () => {
      throw new Error('fault');
    },
  });
  await assert.rejects(run, /fault/);
});

test('the beginning of a command’s line is passed on before the line ends', async () => {
  const stop = new AbortController();
  const partial: string[] = [];
  const running = runCommand('sh', ['-c', 'echo ready; printf "login: "; exec sleep 600'], {
    cwd: '/',
    signal: stop.signal,
    onPartialLine: (text) => {
      partial.push(text);
      stop.abort();
    },
  });
  await assert.rejects(running, { name: 'AbortError' });
  assert.deepEqual(partial, ['login: ']);
});

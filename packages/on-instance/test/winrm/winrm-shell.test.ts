import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { loggedIn } from './windows.ts';

describe('WinrmShell.run', () => {
  it('a command over WinRM returns both streams’ lines and the exit code', async (t) => {
    const { shell, double } = await loggedIn(t, {
      both: async ({ write }) => {
        await write('stdout', 'one\r\ntwo');
        await write(
          'stderr',
          '#< CLIXML\r\n<Objs Version="1.1.0.1"><S S="Error">bad_x000D__x000A_</S></Objs>',
        );
        return 3_221_225_786;
      },
    });
    const lines: string[] = [];
    const result = await shell.run('both "a & b" <c>', {
      signal: t.signal,
      onLine: (line) => void lines.push(line),
    });
    deepEqual(result, { exitCode: 3_221_225_786 });
    deepEqual(lines.toSorted(), ['bad', 'one', 'two']);
    deepEqual(double.commandLines, ['both "a & b" <c>']);
    deepEqual(double.asked, ['Create', 'Command', 'Send', 'Receive', 'Receive', 'Receive', 'Signal']);
  });

  it('a command over WinRM joins a character that arrives in two pieces, and returns lines while it runs', async (t) => {
    const seen = Promise.withResolvers<void>();
    const { shell } = await loggedIn(t, {
      slow: async ({ write }) => {
        const bytes = Buffer.from('grün\n');
        await write('stdout', bytes.subarray(0, 3));
        await write('stdout', bytes.subarray(3));
        await seen.promise;
        return 0;
      },
    });
    const onLine = (line: string): void => {
      equal(line, 'grün');
      seen.resolve();
    };
    deepEqual(await shell.run('slow', { signal: t.signal, onLine }), { exitCode: 0 });
  });

  it('a command over WinRM keeps receiving after an operation timeout without output', async (t) => {
    const { shell, double } = await loggedIn(t, { quiet: () => Promise.resolve(7) });
    double.timeouts = 3;
    deepEqual(await shell.run('quiet', { signal: t.signal, onLine: () => {} }), { exitCode: 7 });
    equal(double.asked.filter((action) => action === 'Receive').length, 4);
  });

  it('a command over WinRM sees the end of its input', async (t) => {
    const { shell } = await loggedIn(t, { reader: async ({ input }) => (await input).length });
    deepEqual(await shell.run('reader', { signal: t.signal, onLine: () => {} }), { exitCode: 0 });
  });

  it('a command over WinRM ends when it is aborted', async (t) => {
    const ended = Promise.withResolvers<void>();
    const { shell } = await loggedIn(t, {
      endless: async ({ signal, write }) => {
        signal.addEventListener('abort', () => ended.resolve());
        await write('stdout', 'begun\n');
        await ended.promise;
        return 1;
      },
    });
    const abort = new AbortController();
    const reason = new Error('enough');
    const onLine = (): void => abort.abort(reason);
    await rejects(shell.run('endless', { signal: abort.signal, onLine }), reason);
    await ended.promise;
    equal(shell.isClosed, false);
  });

  it('a command over WinRM fails if the machine disappears', async (t) => {
    const running = Promise.withResolvers<void>();
    const { shell, double } = await loggedIn(t, {
      shutdown: async ({ signal }) => {
        running.resolve();
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
        return 0;
      },
    });
    const run = shell.run('shutdown', { signal: t.signal, onLine: () => {} });
    const refused = rejects(run, {
      code: 'instance-failed',
      message: /^Administrator@127.0.0.1:\d+: WinRM does not respond/,
    });
    await running.promise;
    await double[Symbol.asyncDispose]();
    await refused;
    equal(shell.isClosed, true);
  });

  it('a command over WinRM fails with the service’s reason', async (t) => {
    const { shell, double } = await loggedIn(t);
    const run = (commandLine: string): Promise<unknown> =>
      shell.run(commandLine, { signal: t.signal, onLine: () => {} });
    await rejects(run('x'.repeat(8192)), { code: 'invalid-configuration', message: /8191 characters/ });
    double.restart();
    await rejects(run('any'), {
      code: 'instance-failed',
      message: /WinRM rejected Command: The double refuses\. \(2150858843\)$/,
    });
    equal(shell.isClosed, true);
  });
});

describe('WinrmShell.put', () => {
  it('files written over WinRM may have any content', async (t) => {
    const { shell, windows } = await loggedIn(t);
    const directory = await mkdtemp(join(tmpdir(), 'winrm-'));
    undoAfter(t, () => rm(directory, { recursive: true }));
    const file = join(directory, 'file');
    const bytes = randomBytes(150_000);
    await writeFile(file, bytes);
    await shell.put(
      [
        { path: 'scripts/grün.ps1', content: { text: "'ü'\r\n" } },
        { path: 'empty', content: { text: '' } },
        { path: 'scripts/large', content: { file } },
      ],
      t.signal,
    );
    deepEqual([...windows.files.keys()], ['scripts/grün.ps1', 'empty', 'scripts/large']);
    equal(String(windows.files.get('scripts/grün.ps1')), "'ü'\r\n");
    equal(windows.files.get('empty')?.length, 0);
    ok(windows.files.get('scripts/large')?.equals(bytes));
  });

  it('writing files over WinRM fails if the content on the machine differs', async (t) => {
    const { shell, windows } = await loggedIn(t);
    t.mock.method(windows.files, 'get', () => Buffer.from('something else'));
    await rejects(shell.put([{ path: 'a', content: { text: 'b' } }], t.signal), {
      code: 'instance-failed',
      message: /cannot write the files there: [0-9A-F]{64}$/,
    });
  });

  it('writing files over WinRM fails if a local file cannot be read', async (t) => {
    const { shell } = await loggedIn(t);
    await rejects(shell.put([{ path: 'a', content: { file: '/nonexistent' } }], t.signal), {
      code: 'directory-not-usable',
      message: /^reading "\/nonexistent" failed/,
    });
  });
});

it('closing a WinRM shell deletes it on the machine', async (t) => {
  const { shell, double } = await loggedIn(t);
  equal(double.openShells, 1);
  shell.close();
  await waitUntil('the shell to go', () => double.openShells === 0);
});

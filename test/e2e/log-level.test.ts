// Only in test:all: it starts each process once for each level.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, it, type TestContext } from 'node:test';
import {
  type BuilderProcess,
  builderCommand,
  spawnBuilder,
  spawnDaemon,
} from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { offeredFunctions } from '../fixtures/gearman-commands.ts';
import { createManagedSite, docsImage, endAfter, spawnManager } from '../fixtures/managed-site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Values of `--log-level`, and the levels in the log of a site with problems. */
const CASES = [
  ['info', ['INFO', 'WARNING']],
  ['warn', ['WARNING']],
  ['error', []],
] as const;

/** An unknown key, about which the daemon warns. */
const ODD_IMAGE = docsImage({ elments: 'vm' });

function levelsOf(log: readonly string[]): readonly string[] {
  const levels = log.map((line) => /^\S+ \S+ ([A-Z]+) [\w.]+: /.exec(line)?.[1] ?? assert.fail(line));
  return [...new Set(levels)].toSorted();
}

async function isOffered(port: number): Promise<boolean> {
  return (await offeredFunctions(port).catch((): string[] => [])).includes('image-build:docs');
}

for (const [level, expected] of CASES) {
  describe(`--log-level ${level}`, () => {
    const during = async (
      t: TestContext,
      start: (config: string) => BuilderProcess,
      isReady: (port: number, store: string) => Promise<boolean> | boolean,
    ): Promise<readonly string[]> => {
      const site = await createManagedSite(t, { diskimages: [ODD_IMAGE] });
      const service = endAfter(t, start(site.config));
      await waitUntil('the service', () => isReady(site.port, site.store));
      assert.equal(await service.end('SIGTERM'), 0);
      return levelsOf(service.log);
    };

    it(`the option --log-level ${level} limits the log of serve`, async (t) => {
      const start = (config: string): BuilderProcess =>
        spawnBuilder(config, '--embedded-gearmand', '--log-level', level);
      assert.deepEqual(await during(t, start, isOffered), expected);
    });

    it(`the option --log-level ${level} limits the log of manage`, async (t) => {
      const start = (config: string): BuilderProcess => spawnManager(t, config, '--log-level', level);
      assert.deepEqual(await during(t, start, (_, store) => existsSync(store)), expected);
    });

    it(`the option --log-level ${level} limits the log of serve in the background`, async (t) => {
      const site = await createManagedSite(t, { diskimages: [ODD_IMAGE] });
      const pidFile = join(site.directory, 'pid');
      const options = ['-p', pidFile, '--embedded-gearmand', '--log-level', level];
      const { code, stderr } = await runCommand('-c', site.config, ...options);
      assert.deepEqual([code, stderr], [0, '']);
      const pid = Number(await readFile(pidFile, 'utf8'));
      undoAfter(t, async () => {
        process.kill(pid, 'SIGTERM');
        await waitUntil('the daemon to end', () => !existsSync(`/proc/${pid}`));
      });
      const log = await readFile(join(site.images, '.nodepool-builder/nodepool-builder.log'), 'utf8');
      assert.deepEqual(levelsOf(log.split('\n').filter(Boolean)), expected);
    });

    it(`the option --log-level ${level} limits the log of gearmand`, async (t) => {
      const [file, args] = builderCommand('gearmand', '-p', '0', '--log-level', level);
      const server = endAfter(t, spawnDaemon([file, args], 'pipe'));
      const stdout = server.child.stdout ?? assert.fail('no standard output');
      const [line] = (await once(createInterface(stdout), 'line')) as [string];
      const malformed = connect(Number(/:(\d+)$/.exec(line)?.[1]), '127.0.0.1');
      malformed.end('\0REQ\0\0\xff\xff\0\0\0\0').resume();
      await once(malformed, 'close');
      assert.equal(await server.end('SIGTERM'), 0);
      assert.deepEqual(levelsOf(server.log), level === 'error' ? [] : ['WARNING']);
    });
  });
}

describe('commands without --log-level', () => {
  it('the option --help names each command’s default log level', async () => {
    for (const [command, level] of [
      ['serve', 'debug'],
      ['manage', 'info'],
      ['gearmand', 'info'],
    ] as const) {
      const { stdout } = await runCommand(command, '--help');
      assert.match(stdout.replaceAll(/\s+/g, ' '), new RegExp(`--log-level <level> [^-]*default: ${level}`));
    }
  });
});

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, readlink, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it, type TestContext } from 'node:test';
import {
  type BuilderProcess,
  builderCommand,
  spawnDaemon,
  startBuilder,
} from '../fixtures/builder-process.ts';
import { offeredFunctions } from '../fixtures/gearman-commands.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { createSite, DOCS, type Site } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

let server: Gearmand;

before(async () => {
  server = await startGearmand();
});
after(() => server.stop());

async function newSite(t: TestContext): Promise<Site> {
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  return site;
}

function endAfter(t: TestContext, builder: BuilderProcess): BuilderProcess {
  undoAfter(t, () => (builder.child.exitCode === null ? builder.end('SIGKILL') : undefined));
  return builder;
}

/** Runs the command with another home directory, and waits for its end. */
async function run(home: string, ...args: readonly string[]): Promise<{ code: number; stderr: string }> {
  const [file, full] = builderCommand(...args);
  return await new Promise((resolve) => {
    execFile(file, full, { env: { ...process.env, HOME: home } }, (error, _stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), stderr });
    });
  });
}

describe('flags, as argparse takes them', () => {
  it('may be cut short, and may be joined with their value', async (t) => {
    const { config } = await newSite(t);
    const builder = endAfter(t, spawnDaemon(builderCommand('-dc', config, '--build', '2', '--up=3')));
    await builder.logged(/nodepool\.builder: serving /);
    assert.equal(await builder.end('SIGINT'), 0);
  });

  it('that are unknown end it with 2', async () => {
    const { code, stderr } = await run('/', '-d', '--fake');
    assert.equal(code, 2, stderr);
  });

  it('with 0 workers offer nothing of that kind', async (t) => {
    const { config, images } = await newSite(t);
    await writeFile(join(images, '0000000007.raw'), 'an image');
    const builder = endAfter(t, await startBuilder(config, '--build-workers', '0'));
    const offered = await waitUntil('the functions', async () => {
      const functions = await offeredFunctions(server.port);
      return functions.length > 0 && functions;
    });
    assert.deepEqual(offered, ['image-delete:0000000007', 'image-upload:0000000007']);
    await builder.end('SIGINT');
  });
});

describe('-l', () => {
  it('may begin with ~, and holds a logging configuration of Python', async (t) => {
    const { config, directory } = await newSite(t);
    await writeFile(
      join(directory, 'logging.conf'),
      `[loggers]
keys=root
[handlers]
keys=file,syslog
[formatters]
keys=
[logger_root]
level=INFO
handlers=file
[handler_file]
class=FileHandler
args=('${directory}/builder.log',)
[handler_syslog]
class=handlers.SysLogHandler
args=()
`,
    );
    const [file, args] = builderCommand('-d', '-c', config, '-l', '~/logging.conf');
    const child = spawn(file, args, {
      env: { ...process.env, HOME: directory },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    undoAfter(t, () => child.kill('SIGKILL'));
    const lines = createInterface(child.stderr);
    const printed: string[] = [];
    lines.on('line', (line) => printed.push(line));
    const log = (): Promise<string> => readFile(join(directory, 'builder.log'), 'utf8').catch(() => '');
    await waitUntil('the log', async () => (await log()).includes('serving'));
    child.kill('SIGINT');
    await once(child, 'exit');
    const [warning, ...others] = (await log()).trimEnd().split('\n');
    assert.match(
      warning ?? '',
      /logging\.conf:14:1: warning: the handler class handlers\.SysLogHandler is not known/,
    );
    assert.equal(others.at(-1), 'stopped');
    assert.deepEqual(printed, []);
  });

  it('that is missing ends it', async (t) => {
    const { config, directory } = await newSite(t);
    const { code, stderr } = await run(directory, '-d', '-c', config, '-l', '~/none.conf');
    assert.equal(code, 1);
    assert.match(stderr, /^nodepool-builder: .*none\.conf:1:1: the file cannot be read: ENOENT.*-l FILE\n$/);
  });

  it('left out, everything is printed on standard error', async (t) => {
    const { config } = await newSite(t);
    const builder = endAfter(t, await startBuilder(config));
    await builder.end('SIGINT');
    for (const line of builder.log) {
      assert.match(line, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:DEBUG|INFO|WARNING|ERROR) [\w.]+: /);
    }
  });
});

describe('in the background', () => {
  it('the directory is /, the umask 022, and nothing is read or printed', async (t) => {
    const { config, directory } = await newSite(t);
    const pidFile = join(directory, 'pid');
    assert.deepEqual(await run(directory, '-c', config, '-p', pidFile), { code: 0, stderr: '' });
    const pid = Number(await readFile(pidFile, 'utf8'));
    assert.equal(await readlink(`/proc/${pid}/cwd`), '/');
    assert.match(await readFile(`/proc/${pid}/status`, 'utf8'), /^Umask:\t0022$/m);
    for (const stream of [0, 1, 2]) assert.equal(await readlink(`/proc/${pid}/fd/${stream}`), '/dev/null');
    assert.equal((await stat(pidFile)).mode & 0o777, 0o644);
    process.kill(pid, 'SIGINT');
    await waitUntil('its end', async () => (await stat(pidFile).catch(() => undefined)) === undefined);
  });

  it('a successor waits for the end of what it takes over from', async (t) => {
    const { config, directory } = await newSite(t);
    const pidFile = join(directory, 'pid');
    const builder = endAfter(t, await startBuilder(config, '-p', pidFile));
    const successor = endAfter(t, spawnDaemon(builderCommand('-d', '-c', config, '-p', pidFile)));
    await once(successor.child, 'spawn');
    assert.equal(await builder.end('SIGINT'), 0);
    await successor.logged(/nodepool\.builder: serving /);
    assert.equal(Number(await readFile(pidFile, 'utf8')), successor.child.pid);
    await successor.end('SIGINT');
  });
});

describe('SIGUSR2', () => {
  it('logs what the process is and holds', async (t) => {
    const { config, images } = await newSite(t);
    const builder = endAfter(t, await startBuilder(config));
    builder.child.kill('SIGUSR2');
    await builder.logged(
      new RegExp(`INFO nodepool\\.builder: diagnostics: process: ${builder.child.pid}, up for`),
    );
    await builder.logged(new RegExp(`diagnostics: images: 0 in ${images}`));
    assert.equal(await builder.end('SIGINT'), 0);
  });
});

describe('a changed file', () => {
  it('is read without a signal: nodepool.yaml, when an editor has replaced it', async (t) => {
    const site = await newSite(t);
    const builder = endAfter(t, await startBuilder(site.config));
    const other = await newSite(t);
    await other.configure(`${DOCS}\n  - {name: more}`);
    await rename(other.config, site.config);
    await builder.logged(/nodepool\.builder: read .*nodepool\.yaml again/);
    await waitUntil('the new function', async () =>
      (await offeredFunctions(server.port)).includes('image-build:more'),
    );
    await builder.end('SIGINT');
  });

  it('is read without a signal: clouds.yaml, when it appears', async (t) => {
    const { config, directory } = await newSite(t);
    const text = await readFile(config, 'utf8');
    await writeFile(
      config,
      `${text}  - {name: cloud, cloud: mycloud, images: [{name: docs, diskimage: docs}]}\n`,
    );
    const [file, args] = builderCommand('-d', '-c', config);
    const builder = endAfter(t, spawnDaemon(['env', [`HOME=${directory}`, file, ...args]]));
    await builder.logged(
      /WARNING nodepool\.builder: .*nodepool\.yaml:\d+:\d+: warning: providers\[1\]: .*mycloud.*uploads to it fail/,
    );
    await builder.logged(/nodepool\.builder: serving /);
    await mkdir(join(directory, '.config/openstack'), { recursive: true });
    await writeFile(
      join(directory, '.config/openstack/clouds.yaml'),
      'clouds: {mycloud: {auth: {auth_url: "https://keystone.example.com/v3", username: u, password: p, project_name: n}}}\n',
    );
    await builder.logged(/nodepool\.builder: read .*nodepool\.yaml again/);
    assert.equal(builder.log.filter((line) => line.includes('uploads to it fail')).length, 1);
    await builder.end('SIGINT');
  });
});

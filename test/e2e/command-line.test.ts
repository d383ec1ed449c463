import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it, type TestContext } from 'node:test';
import {
  type BuilderProcess,
  builderCommand,
  spawnDaemon,
  startBuilder,
} from '../fixtures/builder-process.ts';
import { type Outcome, runCommand } from '../fixtures/command-outcome.ts';
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

/** Runs the command to its end with another home directory. */
async function run(home: string, ...args: readonly string[]): Promise<Outcome> {
  return await runWith({ HOME: home }, '022', ...args);
}

async function runWith(
  variables: Readonly<Record<string, string>>,
  umask: string,
  ...args: readonly string[]
): Promise<Outcome> {
  const [file, full] = builderCommand(...args);
  const command = ['-c', 'umask "$1"; shift; exec "$@"', 'sh', umask, file, ...full];
  return await new Promise((resolve) => {
    execFile('sh', command, { env: { ...process.env, ...variables } }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), stdout, stderr });
    });
  });
}

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o7777).toString(8);
}

describe('flags, as argparse takes them', () => {
  it('flags may be abbreviated and joined with their value, as with argparse', async (t) => {
    const { config } = await newSite(t);
    const builder = endAfter(t, spawnDaemon(builderCommand('-dc', config, '--build', '2', '--up=3')));
    await builder.logged(/nodepool\.builder: serving /);
    assert.equal(await builder.end('SIGINT'), 0);
  });

  it('flags may follow the command serve, as with argparse', async (t) => {
    const { config } = await newSite(t);
    const builder = endAfter(
      t,
      spawnDaemon(builderCommand('-c', config, 'serve', '-d', '--build-workers=2')),
    );
    await builder.logged(/nodepool\.builder: serving /);
    assert.equal(await builder.end('SIGINT'), 0);
  });

  it('unknown flags are rejected with exit code 2', async () => {
    const { code, stderr } = await run('/', '-d', '--fake');
    assert.equal(code, 2, stderr);
  });

  it('a builder with 0 workers of a kind offers no function of that kind', async (t) => {
    const { config, images } = await newSite(t);
    await writeFile(join(images, '0000000007.raw'), 'an image');
    const builder = endAfter(t, await startBuilder(config, '--build-workers', '0'));
    // The server may list one function before it knows the other.
    const offered = await waitUntil('both functions of the image', async () => {
      const functions = await offeredFunctions(server.port);
      return functions.filter((name) => name.endsWith(':0000000007')).length === 2 && functions;
    });
    assert.deepEqual(offered, ['image-delete:0000000007', 'image-upload:0000000007']);
    await builder.end('SIGINT');
  });
});

describe('-l', () => {
  it('the option -l accepts ~ and a logging configuration for Python', async (t) => {
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
      /logging\.conf:14:1: warning: the handler class handlers\.SysLogHandler is not supported/,
    );
    assert.equal(others.at(-1), 'stopped');
    assert.deepEqual(printed, []);
  });

  it('the option -l with a missing file prints an error', async (t) => {
    const { config, directory } = await newSite(t);
    const { code, stderr } = await run(directory, '-d', '-c', config, '-l', '~/none.conf');
    assert.equal(code, 3);
    assert.match(stderr, /^\S*none\.conf:1:1: cannot read the file: ENOENT.*-l FILE\n$/);
  });

  it('the option -l may be omitted, and everything is then printed on standard error', async (t) => {
    const { config } = await newSite(t);
    const builder = endAfter(t, await startBuilder(config));
    await builder.end('SIGINT');
    for (const line of builder.log) {
      assert.match(line, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:DEBUG|INFO|WARNING|ERROR) [\w.]+: /);
    }
  });
});

describe('a daemon in the background', () => {
  /** Starts the daemon, and stops it before the site is removed. */
  async function startInBackground(
    t: TestContext,
    { config, directory }: Site,
    { umask = '022', variables = {}, args = [] as readonly string[] } = {},
  ): Promise<{ pid: number; stdout: string; end: () => Promise<void> }> {
    const pidFile = join(directory, 'pid');
    const line = ['-c', config, '-p', pidFile, ...args];
    const { code, stdout, stderr } = await runWith({ HOME: directory, ...variables }, umask, ...line);
    assert.deepEqual([code, stderr], [0, '']);
    const pid = Number(await readFile(pidFile, 'utf8'));
    const end = async (): Promise<void> => {
      if (!existsSync(`/proc/${pid}`)) return;
      process.kill(pid, 'SIGINT');
      await waitUntil('the daemon to end', () => !existsSync(`/proc/${pid}`));
    };
    undoAfter(t, end);
    return { pid, stdout, end };
  }

  it('a daemon in the background has / as its directory, and its log has the printed path', async (t) => {
    const site = await newSite(t);
    const log = join(site.images, '.nodepool-builder/nodepool-builder.log');
    const { pid, stdout } = await startInBackground(t, site);
    assert.equal(stdout, `nodepool-builder serves in the background as process ${pid}; log: ${log}\n`);
    assert.equal(await readlink(`/proc/${pid}/cwd`), '/');
    assert.equal(await readlink(`/proc/${pid}/fd/0`), '/dev/null');
    for (const stream of [1, 2]) assert.equal(await readlink(`/proc/${pid}/fd/${stream}`), log);
    assert.match(await readFile(log, 'utf8'), /^\S+ \S+ INFO nodepool\.builder: serving .* with 0 images/m);
    assert.match(
      (await run('/', '--help')).stdout,
      /in the\s+background\s+to\s+\.nodepool-builder\/nodepool-builder\.log\s+in\s+images-dir/,
    );
  });

  it('a daemon in the background with -l logs to the configured path, and standard error is kept', async (t) => {
    const site = await newSite(t);
    const settings = join(site.directory, 'logging.yaml');
    await writeFile(settings, 'outputs: [{type: file, filename: own.log}]\n');
    const { pid, stdout } = await startInBackground(t, site, { args: ['-l', settings] });
    const log = join(site.images, '.nodepool-builder/nodepool-builder.log');
    assert.equal(
      stdout,
      `nodepool-builder serves in the background as process ${pid}; log: as configured in ${settings}; standard error: ${log}\n`,
    );
    assert.match(await readFile(join(site.directory, 'own.log'), 'utf8'), /serving /);
    assert.equal(await readFile(log, 'utf8'), '');
  });

  it('a crash of a daemon in the background is logged, even after a rotation', async (t) => {
    const site = await newSite(t);
    const log = join(site.images, '.nodepool-builder/nodepool-builder.log');
    const crash = "data:text/javascript,process.on('SIGWINCH',()=>{throw(Error('crashed'))})";
    const { pid } = await startInBackground(t, site, { variables: { NODE_OPTIONS: `--import=${crash}` } });
    await rename(log, `${log}.1`);
    process.kill(pid, 'SIGWINCH');
    await waitUntil('the daemon to end', () => !existsSync(`/proc/${pid}`));
    assert.match(await readFile(log, 'utf8'), /^Error: crashed\n {4}at /);
  });

  for (const umask of ['0', '077']) {
    it(`a daemon in the background keeps state private and images readable by all, with umask ${umask}`, async (t) => {
      const site = await newSite(t);
      const { pid } = await startInBackground(t, site, { umask });
      assert.match(await readFile(`/proc/${pid}/status`, 'utf8'), /^Umask:\t0022$/m);
      const built = await runCommand('image-build', 'docs', '--image-id', '7', '-c', site.config);
      assert.equal(built.code, 0, built.stderr);
      const upload = ['image-upload', '7', '--provider', 'pool', '--image-name', 'docs'];
      const uploaded = await runCommand(...upload, '-c', site.config);
      assert.equal(uploaded.code, 0, uploaded.stderr);
      const state = join(site.images, '.nodepool-builder');
      const directories = ['', 'deletes', 'logs', 'manifests', 'staging', 'trash', 'uploads'];
      const files = ['builder-id', 'lock', 'manifests/7.json', 'nodepool-builder.log', 'owner.json'].filter(
        (name) => existsSync(join(state, name)),
      );
      for (const name of directories) assert.equal(await modeOf(join(state, name)), '700', name);
      for (const name of files) assert.equal(await modeOf(join(state, name)), '600', name);
      assert.equal(await modeOf(join(state, 'logs/7.log')), '640');
      const images = (await readdir(site.images)).filter((name) => name.startsWith('7.'));
      assert.ok(images.length > 0);
      for (const name of images) assert.equal(await modeOf(join(site.images, name)), '644', name);
      for (const name of ['docs-7.qcow2', 'docs-7.qcow2.json']) {
        assert.equal(await modeOf(join(site.pool, name)), '644', name);
      }
      assert.equal(await modeOf(join(site.directory, 'pid')), '644');
    });
  }

  it('a daemon in the background whose start fails prints the reason and a remedy', async (t) => {
    const site = await newSite(t);
    await rm(site.images, { recursive: true });
    const missing = await run(site.directory, '-c', site.config, '-p', join(site.directory, 'pid'));
    assert.equal(missing.code, 1);
    assert.match(
      missing.stderr,
      /^nodepool-builder: using ".*images" as images-dir failed: ENOENT.*; create the directory/,
    );
    assert.equal(existsSync(site.images), false);
  });

  it('a new daemon waits for the end of the one that its pid file names', async (t) => {
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
  it('SIGUSR2 makes a daemon log its state', async (t) => {
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
  it('a nodepool.yaml that an editor has replaced is reloaded without a signal', async (t) => {
    const site = await newSite(t);
    const builder = endAfter(t, await startBuilder(site.config));
    const other = await newSite(t);
    await other.configure(`${DOCS}\n  - {name: more}`);
    await rename(other.config, site.config);
    await builder.logged(/nodepool\.builder: reloaded .*nodepool\.yaml/);
    await waitUntil('the new function', async () =>
      (await offeredFunctions(server.port)).includes('image-build:more'),
    );
    await builder.end('SIGINT');
  });

  it('a clouds.yaml that appears is reloaded without a signal', async (t) => {
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
    await builder.logged(/nodepool\.builder: reloaded .*nodepool\.yaml/);
    assert.equal(builder.log.filter((line) => line.includes('uploads to it fail')).length, 1);
    await builder.end('SIGINT');
  });
});

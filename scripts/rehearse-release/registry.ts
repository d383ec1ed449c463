import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../free-port.ts';
import { CHECKOUT } from '../fresh-machine/base-system.ts';
import { run } from '../fresh-machine/run.ts';

/** The registry's program and its own dependencies, which our lock file omits. */
const MANIFEST = {
  private: true,
  dependencies: { verdaccio: '6.10.4' },
  // It requests the tag "cjs" of node-fetch, and a registry that mirrors another one may not have tags.
  overrides: { 'node-fetch': '^2.7.0' },
};

/** A registry on loopback that contains our packages, and gets all others from npm's registry. */
export interface Registry extends AsyncDisposable {
  readonly url: string;
}

/**
 * Starts a registry, and publishes all packages of the committed HEAD to it.
 *
 * @param directory - directory for the registry's packages and for a clone
 */
export async function publishHead(directory: string): Promise<Registry> {
  await using stack = new AsyncDisposableStack();
  const { url } = stack.use(await startRegistry(directory));
  await publish(url, directory);
  const opened = stack.move();
  return { url, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** @param data - directory for the registry's packages and its log */
async function startRegistry(data: string): Promise<Registry> {
  const program = join(CHECKOUT, '.cache/verdaccio');
  await mkdir(program, { recursive: true });
  await writeFile(join(program, 'package.json'), JSON.stringify(MANIFEST));
  // Debian 13's npm 9 does not understand that tag, even if it is overridden.
  const npm = [`TMPDIR=${data}`, 'npm', 'exec', '--yes', '--package=npm@11', '--', 'npm'];
  await run('env', [...npm, 'install', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: program });
  const { stdout: upstream } = await promisify(execFile)('npm', ['config', 'get', 'registry']);
  const ours = { access: '$all', publish: '$all' };
  const config = {
    storage: join(data, 'packages'),
    uplinks: { upstream: { url: upstream.trim(), timeout: '60s' } },
    packages: {
      'nodepool-builder': ours,
      '@nodepool-builder/*': ours,
      '**': { access: '$all', proxy: 'upstream' },
    },
    max_body_size: '100mb',
    log: { type: 'file', path: join(data, 'registry.log'), level: 'warn', format: 'json' },
  };
  const file = join(data, 'registry.json');
  await writeFile(file, JSON.stringify(config));
  const listen = `127.0.0.1:${await freePort()}`;
  const verdaccio = join(program, 'node_modules/verdaccio/bin/verdaccio');
  const child = spawn(process.execPath, [verdaccio, '--config', file, '--listen', listen], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const ended = once(child, 'exit');
  const lost = ended.then(([code]) => {
    throw new Error(`the registry ended with ${code}; see ${join(data, 'registry.log')}`);
  });
  lost.catch(() => {}); // rejects when it is stopped
  await Promise.race([once(child, 'message'), lost]); // verdaccio_started
  return {
    url: `http://${listen}/`,
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await ended;
    },
  };
}

/** Publishes from a clone, because lerna and npm write to the packages while they pack them. */
async function publish(url: string, directory: string): Promise<void> {
  const clone = join(directory, 'clone');
  await run('git', ['-c', 'safe.directory=*', 'clone', '--quiet', '--no-hardlinks', CHECKOUT, clone]);
  symlinkSync(join(CHECKOUT, 'node_modules'), join(clone, 'node_modules'));
  for (const name of readdirSync(join(CHECKOUT, 'packages'))) {
    const built = join(CHECKOUT, 'packages', name, 'dist');
    if (existsSync(built)) cpSync(built, join(clone, 'packages', name, 'dist'), { recursive: true });
  }
  writeFileSync(join(clone, '.git/info/exclude'), 'node_modules\n'); // lerna does not publish uncommitted changes
  // npm publishes only with a login, which this registry does not verify.
  const login = join(directory, 'npmrc');
  writeFileSync(login, `registry=${url}\n${url.replace('http:', '')}:_authToken=rehearsal\n`);
  const lerna = join(CHECKOUT, 'node_modules/.bin/lerna');
  const args = ['publish', 'from-package', '--yes', '--registry', url, '--loglevel=warn'];
  // lerna leaves the packed packages in its temporary directory.
  const variables = [`npm_config_userconfig=${login}`, `TMPDIR=${directory}`];
  await run('env', [...variables, lerna, ...args], { cwd: clone });
}

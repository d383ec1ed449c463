import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { builderCommand, spawnBuilder } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const run = promisify(execFile);

/** A shell session in a new network namespace, where port 4730 is free. */
const SESSION = `
ip link set lo up
builder="$1" config="$2"
$builder -c "$config" -p "$config.pid"
listening=$(ss -Hltn)
id=$($builder image-build docs -c "$config")
gearadmin --status
$builder image-upload "$id" --provider pool --image-name docs -c "$config"
$builder image-delete "$id" -c "$config"
pid=$(cat "$config.pid")
kill "$pid"
tail --pid="$pid" -f /dev/null
echo "$listening"
`;

describe('the embedded job server', () => {
  it('the embedded job server runs without gearman-servers, on loopback only', async (t) => {
    const site = await createSite(4730);
    undoAfter(t, () => site.remove());
    const text = await readFile(site.config, 'utf8');
    await writeFile(site.config, text.replace(/^gearman-servers: .*\n/m, ''));
    const builder = builderCommand().flat().join(' ');
    const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
    const shell = ['sh', '-eu', '-c', SESSION, 'session', builder, site.config];
    const { stdout } = await run('unshare', ['--net', ...asRoot, ...shell]);
    assert.match(stdout, /^image-upload:docs-\S+\t0\t0\t1$/m);
    assert.deepEqual(
      [...stdout.matchAll(/^LISTEN +\d+ +\d+ +(\S+)/gm)].map(([, address]) => address),
      ['127.0.0.1:4730'],
    );
  });

  it('the embedded job server reports that another process listens on its port', async (t) => {
    const server = await startGearmand();
    undoAfter(t, () => server.stop());
    const site = await createSite(server.port);
    undoAfter(t, () => site.remove());
    const builder = spawnBuilder(site.config, '--embedded-gearmand');
    const refusal = `cannot listen on 127.0.0.1:${server.port}: .*EADDRINUSE.*; stop the program that listens there`;
    await builder.logged(new RegExp(refusal));
    assert.equal(await builder.ended, 4);
  });
});

// Only in test:all: it fills buffers for a minute.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { waitUntil } from '../fixtures/wait-until.ts';
import { startWebSite } from '../fixtures/web-site.ts';

const LINES = 300_000;

/** Writes a log of 30 MB. */
const SCRIPT = `
seq -f 'line %.0f: the quick brown fox jumps over the lazy dog, again and again, until the end of the log' ${LINES}
truncate -s 1M "$1"`;

/** Number of slow followers. */
const SLOW = 10;

/** Max growth of the service's memory in bytes: much less than the log, most of which each follower has yet to read. */
const MAX_GROWTH = 150e6;

/** Returns the resident memory of a process in bytes. */
async function memoryOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

/** Starts to follow a log. The caller reads the response. */
async function startFollowing(url: string): Promise<IncomingMessage> {
  const [response] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage];
  return response;
}

/** Returns the number of lines in the events of a response, which must end with the log. */
async function linesIn(response: IncomingMessage): Promise<number> {
  const events = await text(response);
  assert.match(events, /event: end\ndata: \{"reason":"the log is complete"\}\n\n$/);
  return events.match(/line \d+: the quick/g)?.length ?? 0;
}

describe('followers of a log that do not read', () => {
  it('followers of a log that do not read cost no memory, hold up no other follower, and lose no line', async (t) => {
    const command = ['sh', '-c', SCRIPT, 'build', '{output.raw}'];
    const diskimages = [{ name: 'docs', builder: 'command', command }];
    const site = await startWebSite(t, { diskimages, providers: [] });
    const imageId = await waitUntil('the build', async () => {
      const [build] = (await site.api('/builds')).body as { 'image-id': string; state: string }[];
      return build?.state === 'ready' && build['image-id'];
    });
    const before = await memoryOf(site.service.child.pid);
    const url = `${site.url}/api/v1/builds/${imageId}/log/events`;
    const slow = await Promise.all(Array.from({ length: SLOW }, () => startFollowing(url)));
    assert.equal(await linesIn(await startFollowing(url)), LINES, 'one that reads gets the whole log');
    const growth = (await memoryOf(site.service.child.pid)) - before;
    t.diagnostic(`memory grew by ${(growth / 1e6).toFixed(0)} MB`);
    assert.ok(growth < MAX_GROWTH, `memory grew by ${growth} bytes`);
    for (const response of slow) assert.equal(response.destroyed, false, 'a slow one stays connected');
    const [first, ...others] = slow;
    for (const response of others) response.destroy();
    assert.equal(await linesIn(first ?? assert.fail()), LINES, 'it gets the rest when it resumes reading');
  });
});

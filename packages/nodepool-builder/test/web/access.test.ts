import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { Access, SESSION_COOKIE } from '../../src/web/access.ts';

const TOKEN = 'a-token-of-32-characters-or-more';

/** Writes a token, which is removed after the test. */
async function tokenFile(t: TestContext, token: string, mode = 0o600): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'access-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'token');
  await writeFile(file, `${token}\n`);
  await chmod(file, mode);
  return file;
}

function requestWith(
  headers: Readonly<Record<string, string>>,
  { session, address = '::1' }: { readonly session?: string; readonly address?: string } = {},
): FastifyRequest {
  const cookies = session === undefined ? {} : { [SESSION_COOKIE]: session };
  return { headers, cookies, socket: { remoteAddress: address } } as unknown as FastifyRequest;
}

describe('Access', () => {
  it('the web interface knows its sessions until they expire or end', async (t) => {
    const access = await Access.open({ webTokenFile: await tokenFile(t, TOKEN) });
    const [session, other] = [access.startSession(), access.startSession()];
    const userOf = (cookie: string) => access.userOf(requestWith({}, { session: cookie }))?.name;
    assert.equal(userOf(session), 'token holder');
    for (const forged of ['', 'x', `9${session}`, session.replace(/.$/, '')]) {
      assert.equal(userOf(forged), undefined, forged);
    }
    access.endSession(requestWith({}, { session }));
    assert.deepEqual([userOf(session), userOf(other)], [undefined, 'token holder']);
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 12 * 3600 * 1000 + 1 });
    assert.equal(userOf(other), undefined);
  });

  it('the web interface ends the oldest of more than 1000 sessions', async (t) => {
    const access = await Access.open({ webTokenFile: await tokenFile(t, TOKEN) });
    const sessions = Array.from({ length: 1001 }, () => access.startSession());
    const users = sessions.map((session) => access.userOf(requestWith({}, { session })));
    assert.equal(users.indexOf(undefined), 0);
    assert.equal(users.lastIndexOf(undefined), 0);
  });

  it('the web interface gives each session and each user its own form token', async (t) => {
    const access = await Access.open({
      webTokenFile: await tokenFile(t, TOKEN),
      webTrustedHeader: 'X-User',
      webTrustedProxy: '192.0.2.1, 192.0.2.2',
    });
    const tokens = [
      ...[1, 2].map(() => access.userOf(requestWith({}, { session: access.startSession() }))),
      ...['alice', 'bob'].map((name) => {
        return access.userOf(requestWith({ 'x-user': name }, { address: '::ffff:192.0.2.2' }));
      }),
    ].map((user) => user?.formToken);
    assert.equal(new Set(tokens).size, 4);
    assert.ok(!tokens.includes(undefined));
  });

  it('the web interface distinguishes requests from its own pages and from other sites', async () => {
    const access = await Access.open({ webUrl: 'https://images.example.org' });
    const host = '127.0.0.1:8080';
    const isOwn = (headers: Readonly<Record<string, string>>): boolean =>
      access.isOwnPage(requestWith({ host, ...headers }));
    assert.ok(isOwn({}));
    assert.ok(isOwn({ origin: `http://${host}` }));
    assert.ok(isOwn({ origin: 'https://images.example.org' }));
    for (const origin of ['null', 'http://127.0.0.1:8081', 'https://images.example.org.evil.example']) {
      assert.ok(!isOwn({ origin }), origin);
    }
    assert.ok(!isOwn({ 'sec-fetch-site': 'cross-site' }));
  });

  it('the web interface rejects a short token, one that others can read, and half of a pair of options', async (t) => {
    const open = async (token: string, mode?: number): Promise<Access> =>
      await Access.open({ webTokenFile: await tokenFile(t, token, mode) });
    await assert.rejects(open('short'), /has fewer than 16 characters; write one with "openssl/);
    await assert.rejects(open(TOKEN, 0o640), /other users can read the token in .*; run "chmod 600/);
    await assert.rejects(Access.open({ webTokenFile: '/nonexistent' }), /correct --web-token-file/);
    await assert.rejects(Access.open({ webTrustedHeader: 'X-User' }), { exitReason: 'usage' });
  });
});

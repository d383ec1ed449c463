import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { IssuedToken } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import type { Authenticator } from '../../../../test/fixtures/zuul/token-check.ts';
import type { ZuulDouble } from '../../../../test/fixtures/zuul/zuul-double.ts';
import { mintToken } from '../../src/credentials/json-web-token.ts';
import type { ZuulCredentials } from '../../src/credentials/zuul-credentials.ts';

export const AUTHENTICATOR: Authenticator = {
  realm: 'zuul.example.com',
  issuer: 'image builder',
  clientId: 'zuul.example.com',
  secret: 'secret of the operator',
};

/** A directory with the operator's secret, and a Zuul that only `nodepool` may read. */
export class TokenFixture {
  readonly directory: string;
  readonly zuul: ZuulDouble;

  private constructor(directory: string, zuul: ZuulDouble) {
    this.directory = directory;
    this.zuul = zuul;
  }

  static async create(t: TestContext): Promise<TokenFixture> {
    const protection = { authenticator: AUTHENTICATOR, subjects: ['nodepool'] };
    const fixture = new TokenFixture(await temporaryDirectory(t), await startZuul(t, { protection }));
    await fixture.write('key', `${AUTHENTICATOR.secret}\n`);
    return fixture;
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  write(name: string, content: string): Promise<void> {
    return writeFile(this.path(name), content);
  }

  /** Returns a token that Zuul accepts. */
  mint({ now = Date.now() } = {}): string {
    return mint({ now }).value;
  }
}

/** Returns a token of the subject `nodepool`. */
export function mint({ now }: { readonly now: number }): IssuedToken {
  const { issuer, clientId: audience, secret } = AUTHENTICATOR;
  return mintToken({ issuer, audience, subject: 'nodepool', 'secret-file': '/nonexistent' }, secret, now);
}

/** Returns the token for a request that starts now. */
export async function tokenOf(credentials: ZuulCredentials, signal: AbortSignal): Promise<string> {
  return (await credentials.current(signal)).value;
}

/** Returns the token that follows after the API responded with 401 to the current one. */
export async function tokenAfterRefusal(credentials: ZuulCredentials, signal: AbortSignal): Promise<string> {
  let requests = 0;
  return await credentials.run(signal, async ({ value }) => {
    requests += 1;
    if (requests === 1) throw new CloudError('auth-failed', '401', { status: 401 });
    return value;
  });
}

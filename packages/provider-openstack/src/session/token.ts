import type { IncomingHttpHeaders } from 'node:http';
import type { CatalogEndpoint } from './catalog.ts';

/** What Keystone gave: who we are until when, and where the services are. */
export interface Token {
  /** Goes into `X-Auth-Token`. Never into a message. */
  readonly id: string;
  /** Milliseconds since the epoch by our own clock, whatever Keystone's says. */
  readonly expiresAt: number;
  readonly catalog: readonly CatalogEndpoint[];
  readonly projectId: string | undefined;
}

/** How a token is asked for in one version of Keystone's language. */
export interface TokenExchange {
  /** Below the version's URL. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body: object;
  /** Reads the answer; throws an Error that names the place of a fault in it. */
  readonly read: (answer: { headers: IncomingHttpHeaders; value: unknown; now: number }) => Token;
}

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { inspect } from 'node:util';
import { networkError } from '../../src/session/network-error.ts';

it('neither an error of the network nor its cause shows the user information of a URL', () => {
  const beneath = Object.assign(new Error('no tunnel via http://ci:hunter2@proxy:3128/: 407'), {
    code: 'ERR_PROXY_TUNNEL',
  });
  const error = networkError('cloud test: GET /', new Error('request failed', { cause: beneath }));
  assert.doesNotMatch(inspect(error, { depth: Infinity, showHidden: true }), /hunter2/);
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkWebOptions, formatWebAddress, webAddress } from '../../src/web/web-options.ts';

describe('the address of --web', () => {
  it('the address for --web is on loopback without a host', () => {
    assert.deepEqual(webAddress('8080'), { host: '127.0.0.1', port: 8080 });
  });

  it('the address for --web may name a host or an IP address', () => {
    for (const text of ['0.0.0.0:8080', '[::1]:8080', 'localhost:0']) {
      assert.equal(formatWebAddress(webAddress(text)), text);
    }
  });

  it('the address for --web is rejected if it is neither a port nor HOST:PORT', () => {
    for (const text of ['', 'localhost', '::1:8080', '127.0.0.1:99999', 'http://localhost:80']) {
      assert.throws(() => webAddress(text), /It must be a port/, text);
    }
  });
});

describe('options that need --web', () => {
  it('options that need --web are rejected without it', () => {
    checkWebOptions({});
    checkWebOptions({ web: '8080', webTokenFile: 'token' });
    assert.throws(() => checkWebOptions({ webTokenFile: 'token' }), {
      exitReason: 'usage',
      message: /add --web$/,
    });
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorMessage } from '../../src/session/error-message.ts';

describe('the words of a cloud', () => {
  const bodies = {
    'Keystone: JSON':
      '{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}',
    'Glance: webob as HTML':
      '<html>\n <head>\n  <title>401 Unauthorized</title>\n </head>\n <body>\n  <h1>401 Unauthorized</h1>\n  The request you have made requires authentication.<br /><br />\n\n\n </body>\n</html>',
    'Glance: webob as JSON':
      '{"message": "The request you have made requires authentication.<br /><br />\\n\\n\\n", "code": "401 Unauthorized", "title": "Unauthorized"}',
    'Glance: webob as text': '401 Unauthorized\n\nThe request you have made requires authentication.\n\n   ',
    'Swift: HTML':
      '<html><h1>Unauthorized</h1><p>The request you have made requires authentication.</p></html>',
    'a proxy': 'The request you have made\r\n requires authentication.',
  };
  for (const [from, body] of Object.entries(bodies)) {
    it(from, () => assert.equal(errorMessage(body), 'The request you have made requires authentication.'));
  }

  it('none', () => assert.equal(errorMessage(''), ''));

  it('with what HTML escapes', () => {
    assert.equal(
      errorMessage('<p>Invalid value &#x27;a&#39; for &lt;name&gt; &amp; &bogus;</p>'),
      "Invalid value 'a' for <name> & &bogus;",
    );
  });

  it('a quota as Glance words it stays whole', () => {
    const words = 'Project is over a limit for [Resource image_size_total is over limit of 10]';
    assert.equal(errorMessage(`413 Request Entity Too Large\n\n${words}\n`), words);
  });

  it('are cut', () => {
    const words = errorMessage('x'.repeat(100_000));
    assert.equal(words, `${'x'.repeat(300)}…`);
  });

  it('hold no secret that a cloud echoes', () => {
    const body = 'no such token gAAAA1: X-Auth-Token: gAAAA1, password s3cret';
    assert.equal(
      errorMessage(body, ['gAAAA1', 's3cret', '']),
      'no such token …: X-Auth-Token: …, password …',
    );
  });

  it('hold no signature of a URL and no password in one', () => {
    assert.equal(
      errorMessage('cannot fetch https://me:pw@store.example/image.qcow2?sig=abc&exp=1: refused'),
      'cannot fetch https://store.example/image.qcow2?… refused',
    );
  });
});

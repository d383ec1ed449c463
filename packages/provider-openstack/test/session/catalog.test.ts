import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CatalogEndpoint, findEndpoint, versioned } from '../../src/session/catalog.ts';
import { failsWith } from '../fixtures/fails-with.ts';

function endpoint(type: string, name: string, which: string, regionId: string): CatalogEndpoint {
  return { type, name, interface: which, regionId, url: `http://${name}/${which}/${regionId}` };
}

const CATALOG = [
  endpoint('identity', 'keystone', 'public', 'north'),
  endpoint('image', 'glance', 'admin', 'north'),
  endpoint('image', 'glance', 'public', 'north'),
  endpoint('image', 'glance', 'public', 'south'),
  endpoint('image', 'mirror', 'public', 'south'),
];

const find = (wanted: object, catalog = CATALOG): string =>
  findEndpoint('test', catalog, { type: 'image', interface: 'public', ...wanted });

describe('the endpoint of a service', () => {
  it('a service’s endpoint is the first one with its type and interface', () => {
    assert.equal(find({}), 'http://glance/public/north');
    assert.equal(find({ interface: 'admin' }), 'http://glance/admin/north');
  });

  it('a service’s endpoint matches the region and the name', () => {
    assert.equal(find({ regionName: 'south' }), 'http://glance/public/south');
    assert.equal(find({ regionName: 'south', name: 'mirror' }), 'http://mirror/public/south');
  });

  it('a service’s endpoint may be requested by the old names of interfaces', () => {
    assert.equal(find({ interface: 'publicURL' }), 'http://glance/public/north');
  });

  it('a service’s endpoint without a URL does not count, and causes an error if it is the wanted one', () => {
    const nameless = { ...endpoint('image', 'old', 'public', 'north'), url: undefined };
    assert.equal(find({}, [nameless, ...CATALOG]), 'http://glance/public/north');
    const error = failsWith(
      'no-such-service',
      'the public endpoint of a service of type image',
      'has no URL',
    );
    assert.throws(() => find({}, [nameless]), error);
  });

  it('a missing service causes an error that lists the catalog’s services', () => {
    const wrong = failsWith('no-such-service', 'type object-store', 'services of type identity, image');
    assert.throws(() => find({ type: 'object-store' }), wrong);
  });

  it('a service in another region or with another interface causes an error that lists both', () => {
    const wrong = failsWith(
      'no-such-service',
      'no internal endpoint',
      'in region East',
      'glance public in south',
    );
    assert.throws(() => find({ interface: 'internal', regionName: 'East' }), wrong);
  });

  it('a service without a catalog causes an error that says to name the project', () => {
    assert.throws(() => find({}, []), failsWith('no-such-service', 'name the project'));
  });
});

describe('the version in a URL', () => {
  const rows: [string, string | undefined, string][] = [
    ['http://glance:9292', 'v2', 'http://glance:9292/v2'],
    ['http://glance:9292/', 'v2', 'http://glance:9292/v2'],
    ['http://cloud/image/', 'v2', 'http://cloud/image/v2'],
    ['http://glance:9292/v2', 'v2', 'http://glance:9292/v2'],
    ['http://glance:9292/v2/', 'v2', 'http://glance:9292/v2'],
    ['http://glance:9292/v2.0', 'v2', 'http://glance:9292/v2.0'],
    ['http://images.example/v2/1234', 'v2', 'http://images.example/v2/1234'],
    ['http://glance:9292/v1', 'v2', 'http://glance:9292/v2'],
    ['http://v2.example', 'v2', 'http://v2.example/v2'],
    ['http://swift/v1/AUTH_p1', undefined, 'http://swift/v1/AUTH_p1'],
  ];
  for (const [url, version, expected] of rows) {
    it(`the endpoint ${url} with ${version} becomes ${expected}`, () =>
      assert.equal(versioned(url, version), expected));
  }
});

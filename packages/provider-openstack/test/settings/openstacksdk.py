"""Prints the release of openstacksdk, and its settings for each case on standard input, as JSON."""
import importlib
import importlib.metadata
import json
import os
import sys
import warnings

from openstack.config import loader

warnings.simplefilter('ignore')
CACHE = {key: value for key, value in os.environ.items() if key == 'XDG_CACHE_HOME'}


def settings_of(case):
    os.environ.clear()
    os.environ.update(CACHE | case['env'])
    os.chdir(case['cwd'])
    # The search path is set when the module is loaded.
    importlib.reload(loader)
    region = loader.OpenStackConfig().get_one(cloud=case['cloud'], **case['arguments'])
    verify, cert = region.get_requests_verify_args()
    services = {
        service: {
            'type': region.get_service_type(service),
            'name': region.get_service_name(service),
            'interface': region.get_interface(service),
            'region': region.get_region_name(service),
            'endpoint': region.get_endpoint(service),
        }
        for service in ('image', 'object-store')
    }
    return {
        'name': region.name,
        'auth_type': region.config['auth_type'],
        'auth': region.config['auth'],
        'image': services['image'],
        'object_store': services['object-store'],
        'verify': verify,
        'cert': cert,
        'api_timeout': region.config['api_timeout'],
        'image_format': region.config['image_format'],
        'image_api_use_tasks': region.config['image_api_use_tasks'],
        'disable_vendor_agent': region.config['disable_vendor_agent'],
    }


def settings_or_error(case):
    try:
        return settings_of(case)
    except Exception as error:  # any error means that the case is rejected
        return {'error': type(error).__name__}


results = [settings_or_error(case) for case in json.load(sys.stdin)]
print(json.dumps({'release': importlib.metadata.version('openstacksdk'), 'results': results}))

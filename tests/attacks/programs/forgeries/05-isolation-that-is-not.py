# harmless: isolation that is not

shout(json.dumps({'probe': {'filesystem': False}, 'layers': [], 'isolation': 'none'}).encode() + b'\n')
